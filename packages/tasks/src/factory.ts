import type { TaskStore } from './store.ts';
import { createMemoryStore, type MemoryStoreOptions } from './stores/memory.ts';
import { createPostgresStore, type PostgresStoreOptions } from './stores/postgres.ts';
import { createRedisStore, type RedisStoreOptions } from './stores/redis.ts';
import { createSqliteStore, type SqliteStoreOptions } from './stores/sqlite.ts';

/** Which store, and what it needs to know. */
export type TaskStoreConfig =
  | ({ readonly backend: 'memory' } & MemoryStoreOptions)
  | ({ readonly backend: 'sqlite' } & SqliteStoreOptions)
  | ({ readonly backend: 'redis' } & RedisStoreOptions)
  | ({ readonly backend: 'postgres' } & PostgresStoreOptions);

/** Creates the store that a configuration names; memory if it names none. */
export function createTaskStore(config: TaskStoreConfig = { backend: 'memory' }): TaskStore {
  const { backend } = config;
  switch (config.backend) {
    case 'memory':
      return createMemoryStore(config);
    case 'sqlite':
      return createSqliteStore(config);
    case 'redis':
      return createRedisStore(config);
    case 'postgres':
      return createPostgresStore(config);
    default:
      throw new TypeError(`backend: '${String(backend)}' is none of memory, sqlite, redis, postgres`);
  }
}
