import type { RedisOptions } from 'ioredis';
import type { RedisStoreOptions } from '../options.ts';

const MAX_RECONNECT_MS = 500;

interface Address {
  readonly host: string;
  readonly port: number;
}

/** Returns the configured servers. */
export function parseAddresses({ url }: Pick<RedisStoreOptions, 'url'>): readonly (Address & { parsed: URL })[] {
  return [url].flat().map((text) => {
    const parsed = URL.canParse(text) ? new URL(text) : undefined;
    if (parsed === undefined || !['redis:', 'rediss:'].includes(parsed.protocol)) {
      throw new TypeError("url: expected 'redis://host:port' or 'rediss://host:port'");
    }
    const host = parsed.hostname.replace(/^\[(.*)\]$/, '$1') || '127.0.0.1';
    return { host, port: Number(parsed.port || 6379), parsed };
  });
}

/** Returns the library's options for a single server, or for the master that the Sentinels name. */
export function serverOptions(options: RedisStoreOptions): RedisOptions {
  const addresses = parseAddresses(options);
  const { host, port, parsed } = addresses[0]!;
  const db = Number(parsed.pathname.slice(1) || 0);
  if (options.sentinel === undefined) return { ...commonOptions(options), host, port, db };
  const { name, username, password } = options.sentinel;
  return {
    ...commonOptions(options),
    db,
    sentinels: addresses.map((address) => ({ host: address.host, port: address.port })),
    name,
    // Detect failovers through the Sentinels: a suspended master wakes up and still accepts everything.
    failoverDetector: true,
    sentinelRetryStrategy: retryAfterMs,
    ...(username !== undefined && { sentinelUsername: username }),
    ...(password !== undefined && { sentinelPassword: password }),
    ...(options.tls !== undefined && { enableTLSForSentinelMode: true }),
  };
}

/** Returns the library's options for one node of a Cluster. */
export function nodeOptions(options: RedisStoreOptions, { host, port }: Address): RedisOptions {
  return { ...commonOptions(options), host, port };
}

function commonOptions(options: RedisStoreOptions): RedisOptions {
  const { parsed } = parseAddresses(options)[0]!;
  const tls = parsed.protocol === 'rediss:' || options.tls !== undefined ? { tls: { ...options.tls } } : {};
  return {
    ...(parsed.username !== '' && { username: decodeURIComponent(parsed.username) }),
    ...(parsed.password !== '' && { password: decodeURIComponent(parsed.password) }),
    ...tls,
    connectionName: 'whoa',
    // Don't lower it: with RESP2 a subscribed connection accepts no other commands, and a second one is needed.
    protocol: 3,
    // Never send anything twice or late: only the caller, which knows the outcome, decides whether to repeat a command.
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: retryAfterMs,
  };
}

function retryAfterMs(times: number): number {
  return Math.min(10 * 2 ** Math.min(times, 10), MAX_RECONNECT_MS);
}
