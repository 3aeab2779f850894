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
  const { backend, ...options } = config;
  checkOptions(backend, options);
  switch (config.backend) {
    case 'memory':
      return createMemoryStore(config);
    case 'sqlite':
      return createSqliteStore(config);
    case 'redis':
      return createRedisStore(config);
    case 'postgres':
      return createPostgresStore(config);
  }
}

type Names<Options> = Readonly<Record<keyof Options, true>>;

const SHARED: Names<MemoryStoreOptions> = {
  shards: true,
  attemptsMax: true,
  retentionMs: true,
  conversationRetentionMs: true,
  journalBytesMax: true,
  world: true,
};
const SQLITE: Names<SqliteStoreOptions> = { ...SHARED, file: true, durability: true, pollMs: true };
const REDIS: Names<RedisStoreOptions> = {
  ...SHARED,
  url: true,
  cluster: true,
  sentinel: true,
  tls: true,
  prefix: true,
  timeoutMs: true,
  replicas: true,
};
const POSTGRES: Names<PostgresStoreOptions> = {
  ...SHARED,
  url: true,
  schema: true,
  connectionsMax: true,
  connectTimeoutMs: true,
  statementTimeoutMs: true,
  pollMs: true,
};
const BACKENDS = { memory: SHARED, sqlite: SQLITE, redis: REDIS, postgres: POSTGRES };

/** A configuration may come from a file: `path` for `file` would otherwise open another store than the one meant. */
function checkOptions(backend: string, options: object): void {
  if (!Object.hasOwn(BACKENDS, backend)) {
    throw new TypeError(`backend: '${backend}' is none of ${Object.keys(BACKENDS).join(', ')}`);
  }
  const names = BACKENDS[backend as keyof typeof BACKENDS];
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(names, name));
  if (unknown === undefined) return;
  throw new TypeError(`${unknown}: the ${backend} store has no such option; it has ${Object.keys(names).join(', ')}`);
}
