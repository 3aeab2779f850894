import { settings, worldRule } from '@whoa/core/internal';
import type { TaskStore } from '../store.ts';
import { createMemoryStore, type MemoryStoreOptions } from './memory.ts';
import { createPostgresStore, type PostgresStoreOptions } from './postgres.ts';
import type { RedisStoreOptions } from './redis/options.ts';
import { createRedisStore } from './redis.ts';
import { createSqliteStore, type SqliteStoreOptions } from './sqlite.ts';

/** Which store to create, and its options. */
export type TaskStoreConfig =
  | ({ readonly backend: 'memory' } & MemoryStoreOptions)
  | ({ readonly backend: 'sqlite' } & SqliteStoreOptions)
  | ({ readonly backend: 'redis' } & RedisStoreOptions)
  | ({ readonly backend: 'postgres' } & PostgresStoreOptions);

/**
 * Creates the store for a configuration or an address. Defaults to a store in memory. Addresses: `redis://host:port`,
 * `postgres://host/database`, `sqlite:path/to/file`, `memory:`.
 *
 * @returns The store.
 * @throws TypeError or {@link SettingsError} when the configuration is invalid; {@link StoreSetupError}, from its
 * methods, when a driver is not installed or the store cannot be used.
 *
 * @example
 * ```ts
 * import { createTaskStore } from '@whoa/tasks';
 *
 * await using store = createTaskStore(process.env.STORE_URL ?? 'sqlite:tasks.db');
 * const receipt = await store.cancel({ tenant: 'acme', id: taskId }, { kind: 'user' });
 * console.log(receipt.result);
 * ```
 */
export function createTaskStore(config: TaskStoreConfig | string = { backend: 'memory' }): TaskStore {
  const checked = readStoreConfig(config);
  switch (checked.backend) {
    case 'memory':
      return createMemoryStore(checked);
    case 'sqlite':
      return createSqliteStore(checked);
    case 'redis':
      return createRedisStore(checked);
    case 'postgres':
      return createPostgresStore(checked);
  }
}

function parseStoreUrl(address: string): TaskStoreConfig {
  const [, scheme = '', rest = ''] = /^([a-z]+):(.*)$/s.exec(address) ?? [];
  if (scheme === 'memory') return { backend: 'memory' };
  if (scheme === 'redis' || scheme === 'rediss') return { backend: 'redis', url: address };
  if (scheme === 'postgres' || scheme === 'postgresql') return { backend: 'postgres', url: address };
  if (scheme === 'sqlite') return { backend: 'sqlite', file: rest };
  // Don't include the address in the error: it may contain a password.
  throw new TypeError(
    "store: expected an address that starts with 'redis:', 'rediss:', 'postgres:', 'sqlite:' or 'memory:'",
  );
}

/**
 * Checks a configuration or an address, including for unknown options: a file with `path` instead of `file` would otherwise
 * open the wrong store.
 *
 * @returns The configuration.
 * @throws TypeError or {@link SettingsError} when it is invalid.
 */
export function readStoreConfig(config: TaskStoreConfig | string): TaskStoreConfig {
  const given = typeof config === 'string' ? parseStoreUrl(config) : config;
  const backend = required(oneOf(...Object.keys(BACKENDS)));
  const named = settings.readSettings<Pick<TaskStoreConfig, 'backend'>>(given, { backend }, { allowUnknown: true });
  return settings.readSettings<TaskStoreConfig>(given, { backend, ...BACKENDS[named.backend] });
}

const { boundedMs, count, flag, group, nonEmptyText, oneOf, required, rule } = settings;

const DAY_MS = 86_400_000;
const keptMs = boundedMs({ max: 3_650 * DAY_MS });
const beatMs = boundedMs({ max: DAY_MS });

const SHARED: settings.Rules<MemoryStoreOptions> = {
  maxAttempts: count(),
  retentionMs: keptMs,
  conversationRetentionMs: keptMs,
  maxJournalBytes: count(),
  maxReady: count(),
  maxRunningPerTenant: count(),
  maxRunningPerAgent: count(),
  world: worldRule,
};
const SQLITE: settings.Rules<SqliteStoreOptions> = {
  ...SHARED,
  file: nonEmptyText,
  durability: oneOf('process', 'power'),
  pollIntervalMs: beatMs,
};
const REDIS: settings.Rules<RedisStoreOptions> = {
  ...SHARED,
  shards: rule('a number of shards, or what it was and is: [1, 16]', isShards),
  url: required(rule('the address redis://host:port, or a list of them', isAddress)),
  cluster: flag,
  sentinel: group<NonNullable<RedisStoreOptions['sentinel']>>({
    name: required(nonEmptyText),
    password: nonEmptyText,
    username: nonEmptyText,
  }),
  tls: rule('options for TLS', settings.isObject),
  prefix: nonEmptyText,
  timeoutMs: beatMs,
  replicas: group<NonNullable<RedisStoreOptions['replicas']>>({ atLeast: required(count()) }),
};
const POSTGRES: settings.Rules<PostgresStoreOptions> = {
  ...SHARED,
  url: nonEmptyText,
  listenUrl: nonEmptyText,
  schema: nonEmptyText,
  maxConnections: count(),
  connectTimeoutMs: beatMs,
  statementTimeoutMs: beatMs,
  pollIntervalMs: beatMs,
};
const BACKENDS = { memory: SHARED, sqlite: SQLITE, redis: REDIS, postgres: POSTGRES };

function isShards(value: unknown): boolean {
  const counts = [value].flat();
  return counts.length > 0 && counts.every((one) => Number.isInteger(one) && (one as number) > 0);
}

function isAddress(value: unknown): boolean {
  const isText = (one: unknown): boolean => typeof one === 'string' && one !== '';
  return Array.isArray(value) ? value.length > 0 && value.every(isText) : isText(value);
}
