import type { TaskStore } from '../store.ts';
import { createMemoryStore } from './memory.ts';
import { createPostgresStore } from './postgres.ts';
import { createSqliteStore } from './sqlite.ts';
import { readStoreConfig, type TaskStoreConfig } from './store-config.ts';

/**
 * Creates the store for a configuration or an address. Addresses: `postgres://host/database`, `sqlite:path/to/file`, and
 * `memory` for a store that only this process has. There is no default.
 *
 * @returns The store.
 * @throws {@link SettingsError} when the configuration is invalid or `undefined`; {@link StoreSetupError}, from its
 * methods, when a driver is not installed or the store cannot be used.
 *
 * @example
 * ```ts
 * import { createTaskStore } from '@whoa/tasks';
 *
 * await using store = createTaskStore(process.env.STORE_URL);
 * const receipt = await store.cancel({ tenant: 'acme', id: taskId }, { kind: 'user' });
 * console.log(receipt.result);
 * ```
 */
export function createTaskStore(config: TaskStoreConfig | string | undefined): TaskStore {
  const checked = readStoreConfig(config);
  switch (checked.backend) {
    case 'memory': {
      const { backend: _, ...options } = checked;
      return createMemoryStore(options);
    }
    case 'sqlite':
      return createSqliteStore(checked);
    case 'postgres':
      return createPostgresStore(checked);
  }
}
