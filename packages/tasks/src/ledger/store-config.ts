import { SettingsError } from '@whoa/core';
import { settings } from '@whoa/core/internal';
import { isBus } from '../bus/open-bus.ts';
import type { RedisBusConfig } from '../bus/redis-bus.ts';
import { MEMORY_RULES, type MemoryStoreOptions } from './memory.ts';
import type { PostgresStoreOptions } from './postgres/options.ts';
import type { SqliteStoreOptions } from './sqlite.ts';

/** Which store to create, and its options. */
export type TaskStoreConfig =
  | ({ readonly backend: 'memory' } & MemoryStoreOptions)
  | ({ readonly backend: 'sqlite' } & SqliteStoreOptions)
  | ({ readonly backend: 'postgres' } & PostgresStoreOptions);

const ADDRESSES = "'memory', 'sqlite:FILE' or 'postgres://HOST/DATABASE'";

const NOT_REDIS = "Redis keeps no tasks: use 'postgres://HOST/DATABASE', and Redis as its bus";

/**
 * Checks a configuration or an address, including for unknown options: a file with `path` instead of `file` would otherwise
 * open the wrong store. An absent one is an error: an address that is not set must not mean the memory of this process.
 *
 * @returns The configuration.
 * @throws {@link SettingsError} when it is invalid. `within` is the setting that holds it.
 */
export function readStoreConfig(config: TaskStoreConfig | string | undefined, within?: string): TaskStoreConfig {
  const field = within ?? 'store';
  if (config === undefined)
    throw new SettingsError(field, `expected ${ADDRESSES}, or { backend }; got undefined: is its variable set?`);
  if (typeof config !== 'string' && !settings.isObject(config)) throw settings.unexpected(field, config, ADDRESSES);
  const given = typeof config === 'string' ? parseAddress(config, field) : config;
  if ((given as { backend?: unknown }).backend === 'redis') throw new SettingsError(field, NOT_REDIS);
  const options = within === undefined ? {} : { within };
  const backend = required(oneOf(...Object.keys(BACKENDS)));
  const named = settings.readSettings<Pick<TaskStoreConfig, 'backend'>>(
    given,
    { backend },
    { ...options, allowUnknown: true },
  );
  return settings.readSettings<TaskStoreConfig>(given, { backend, ...BACKENDS[named.backend] }, options);
}

function parseAddress(address: string, field: string): TaskStoreConfig {
  const [, scheme = '', rest = ''] = /^([a-z]+):(.*)$/s.exec(address) ?? [];
  if (/^memory:?$/.test(address)) return { backend: 'memory' };
  if (scheme === 'sqlite') return { backend: 'sqlite', file: rest };
  if (scheme === 'redis' || scheme === 'rediss') throw new SettingsError(field, NOT_REDIS);
  if (SCHEMES.postgres.test(address)) return { backend: 'postgres', url: address };
  throw new SettingsError(field, `expected ${ADDRESSES}, got ${describeAddress(address)}`);
}

const SCHEMES = { redis: /^rediss?:\/\//, postgres: /^postgres(ql)?:\/\// };

/** Describes an address without what may be a password: neither its user nor what no one can tell apart from one. */
function describeAddress(address: string, backend: keyof typeof SCHEMES = 'postgres'): string {
  if (address === '') return 'an empty text: is its variable set?';
  const [, scheme] = /^([a-z][a-z0-9+.-]{0,30}):(?!\d+(\/|$))/i.exec(address) ?? [];
  if (scheme !== undefined) return `an address that starts with '${scheme}:'`;
  if (/^[\w.-]{1,80}:\d+$/.test(address)) return `'${address}'; write '${backend}://${address}'`;
  if (/^[\w./-]{1,80}\.(db|sqlite3?)$/.test(address)) return `'${address}'; for a file, write 'sqlite:${address}'`;
  return `text without a scheme, such as '${backend}:'`;
}

const { boundedMs, count, flag, group, nonEmptyText, oneOf, required, rule } = settings;

/** The rule for the address of a server. It does not show what it refuses. */
function createAddressRule(backend: keyof typeof SCHEMES, example: string): settings.Rule {
  return (value, field) => {
    if (typeof value === 'string' && SCHEMES[backend].test(value)) return value;
    const got = typeof value === 'string' ? describeAddress(value, backend) : String(typeof value);
    throw new SettingsError(field, `expected an address such as '${example}', got ${got}`);
  };
}

const redisUrl = createAddressRule('redis', 'redis://host:6379');
const redisUrls: settings.Rule = (value, field) =>
  Array.isArray(value) && value.length > 0 ? settings.listOf(redisUrl)(value, field) : redisUrl(value, field);
const redisBus = group<RedisBusConfig>({ backend: required(oneOf('redis')), url: required(redisUrls), cluster: flag });
/** An address, a configuration, or a bus that the caller made. */
const busRule: settings.Rule = (value, field) => {
  if (isBus(value)) return value;
  return settings.isObject(value) ? redisBus(value, field) : redisUrl(value, field);
};
const postgresUrl = createAddressRule('postgres', 'postgres://host/database');

const DAY_MS = 86_400_000;
const beatMs = boundedMs({ max: DAY_MS });
const isPath = (value: unknown): boolean => typeof value === 'string' && /^(?!:memory:|file:)./s.test(value);

const SQLITE: settings.Rules<SqliteStoreOptions> = {
  ...MEMORY_RULES,
  file: rule("the path of a file; for a store in memory, use backend 'memory'", isPath),
  bus: busRule,
  durability: oneOf('process', 'power'),
  pollIntervalMs: beatMs,
};
const POSTGRES: settings.Rules<PostgresStoreOptions> = {
  ...MEMORY_RULES,
  url: postgresUrl,
  bus: busRule,
  listenUrl: postgresUrl,
  schema: nonEmptyText,
  maxConnections: count(),
  connectTimeoutMs: beatMs,
  statementTimeoutMs: beatMs,
  pollIntervalMs: beatMs,
};
const BACKENDS = { memory: MEMORY_RULES, sqlite: SQLITE, postgres: POSTGRES };
