import type { TaskStoreConfig } from '@whoa/tasks';
import type { Bare } from './bare.ts';
import { createBarePostgres } from './postgres.ts';

/** The bare engine that belongs to a configuration, for a separate process. */
export function openBare(config: TaskStoreConfig): Bare {
  if (config.backend === 'postgres') return createBarePostgres(config);
  throw new TypeError(`backend: nobody has written the bare '${config.backend}'`);
}
