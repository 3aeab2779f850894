import type { RedisOptions } from 'ioredis';
import type { RedisStoreOptions } from '../options.ts';

const MAX_RECONNECT_MS = 500;

interface Address {
  readonly host: string;
  readonly port: number;
}

/** The servers that a store was told of. */
export function addressesOf({ url }: Pick<RedisStoreOptions, 'url'>): readonly (Address & { parsed: URL })[] {
  return [url].flat().map((text) => {
    const parsed = URL.canParse(text) ? new URL(text) : undefined;
    if (parsed === undefined || !['redis:', 'rediss:'].includes(parsed.protocol)) {
      throw new TypeError("url: expected 'redis://host:port' or 'rediss://host:port'");
    }
    const host = parsed.hostname.replace(/^\[(.*)\]$/, '$1') || '127.0.0.1';
    return { host, port: Number(parsed.port || 6379), parsed };
  });
}

/** How the library connects to the one server, or to the master that the Sentinels name. */
export function serverOptions(options: RedisStoreOptions): RedisOptions {
  const addresses = addressesOf(options);
  const { host, port, parsed } = addresses[0]!;
  const db = Number(parsed.pathname.slice(1) || 0);
  if (options.sentinel === undefined) return { ...commonOptions(options), host, port, db };
  const { name, username, password } = options.sentinel;
  return {
    ...commonOptions(options),
    db,
    sentinels: addresses.map((address) => ({ host: address.host, port: address.port })),
    name,
    // Hear of a failover from the Sentinels: a master that was stopped wakes up and still says yes to everything.
    failoverDetector: true,
    sentinelRetryStrategy: retryAfterMs,
    ...(username !== undefined && { sentinelUsername: username }),
    ...(password !== undefined && { sentinelPassword: password }),
    ...(options.tls !== undefined && { enableTLSForSentinelMode: true }),
  };
}

/** How the library connects to one node of a Cluster. */
export function nodeOptions(options: RedisStoreOptions, { host, port }: Address): RedisOptions {
  return { ...commonOptions(options), host, port };
}

function commonOptions(options: RedisStoreOptions): RedisOptions {
  const { parsed } = addressesOf(options)[0]!;
  const tls = parsed.protocol === 'rediss:' || options.tls !== undefined ? { tls: { ...options.tls } } : {};
  return {
    ...(parsed.username !== '' && { username: decodeURIComponent(parsed.username) }),
    ...(parsed.password !== '' && { password: decodeURIComponent(parsed.password) }),
    ...tls,
    connectionName: 'whoa',
    // Don't lower it: with RESP2 a connection that is subscribed to something takes no other commands, and needs a second one.
    protocol: 3,
    // Never send anything twice, or later than asked: whether to repeat a command is decided where its outcome is known.
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
