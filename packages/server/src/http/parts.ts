import type { World } from '@whoa/core/embed';
import type { TaskStore } from '@whoa/tasks';
import type { Access } from './access/access.ts';
import type { Login } from './access/login.ts';

/** The dependencies of endpoints. */
export interface ApiParts {
  readonly store: TaskStore;
  readonly access: Access;
  readonly world: World;
  readonly agents: readonly string[] | undefined;
  readonly login: Login | undefined;
  readonly metrics: (() => string | Promise<string>) | undefined;
  readonly isDraining: (() => boolean) | undefined;
  readonly onError: (error: unknown) => void;
}
