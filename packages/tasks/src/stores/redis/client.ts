import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis';
import type { RedisStoreOptions } from './options.ts';

type Library = Pick<typeof import('ioredis'), 'Redis' | 'Cluster'>;
export type Client = Redis | Cluster;

const RECONNECT_MS_MAX = 500;
/** A Cluster's map of slots is looked at again this often, in case a master has been replaced. */
const SLOTS_REFRESH_MS = 2_000;
const LEAVE_MS_MAX = 1_000;

/** Loads the library on first use and connects. The connection mends itself until it is closed. */
export async function connect(options: RedisStoreOptions, name: string): Promise<Client> {
  const { Redis, Cluster } = await loadLibrary();
  const addresses = addressesOf(options);
  const client = options.cluster
    ? new Cluster(
        addresses.map(({ host, port }) => ({ host, port })),
        clusterOptions(options, name) as object,
      )
    : new Redis((options.sentinel === undefined ? singleOptions : sentinelOptions)(options, name) as object);
  // Without a listener the library writes to the console; what goes wrong is told by the operation it happens to.
  client.on('error', () => {});
  // However many operations wait for a connection, each with a listener of its own.
  client.setMaxListeners(0);
  return client;
}

/** Ends a connection and begins another, perhaps with another server. Resolves when nothing is sent on the old one. */
export function leave(client: Client): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, LEAVE_MS_MAX);
    client.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
    client.disconnect(true);
  });
}

/** Waits until a connection is there; false if it is not in time. */
export function waitForReady(client: Client, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (isReady: boolean) => (): void => {
      clearTimeout(timer);
      client.off('ready', onReady);
      client.off('end', onEnd);
      resolve(isReady);
    };
    const [onReady, onEnd] = [settle(true), settle(false)];
    const timer = setTimeout(onEnd, Math.max(1, ms));
    client.once('ready', onReady);
    client.once('end', onEnd);
  });
}

async function loadLibrary(): Promise<Library> {
  try {
    const { Redis, Cluster } = await import('ioredis');
    return { Redis, Cluster };
  } catch (error) {
    throw new Error("The Redis store needs the package 'ioredis'; install it: npm install ioredis", { cause: error });
  }
}

function addressesOf({ url }: RedisStoreOptions): { host: string; port: number; parsed: URL }[] {
  return [url].flat().map((text) => {
    const parsed = URL.canParse(text) ? new URL(text) : undefined;
    if (parsed === undefined || !['redis:', 'rediss:'].includes(parsed.protocol)) {
      throw new TypeError("url: expected 'redis://host:port' or 'rediss://host:port'");
    }
    const host = parsed.hostname.replace(/^\[(.*)\]$/, '$1') || '127.0.0.1';
    return { host, port: Number(parsed.port || 6379), parsed };
  });
}

/** What every connection to a server of ours has in common. */
function commonOptions(options: RedisStoreOptions, name: string): RedisOptions {
  const { parsed } = addressesOf(options)[0]!;
  const tls = parsed.protocol === 'rediss:' || options.tls !== undefined ? { tls: { ...options.tls } } : {};
  return {
    ...(parsed.username !== '' && { username: decodeURIComponent(parsed.username) }),
    ...(parsed.password !== '' && { password: decodeURIComponent(parsed.password) }),
    ...tls,
    connectionName: name,
    protocol: 2,
    // Never send anything twice behind our back, nor later than we think: whether to repeat is for us to decide.
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (times) => Math.min(10 * 2 ** Math.min(times, 10), RECONNECT_MS_MAX),
  };
}

function singleOptions(options: RedisStoreOptions, name: string): RedisOptions {
  const { host, port, parsed } = addressesOf(options)[0]!;
  return { ...commonOptions(options, name), host, port, db: Number(parsed.pathname.slice(1) || 0) };
}

function sentinelOptions(options: RedisStoreOptions, connectionName: string): RedisOptions {
  const { name, username, password } = options.sentinel!;
  const addresses = addressesOf(options);
  return {
    ...commonOptions(options, connectionName),
    sentinels: addresses.map(({ host, port }) => ({ host, port })),
    name,
    db: Number(addresses[0]!.parsed.pathname.slice(1) || 0),
    // Hear of a failover from the Sentinels: a master that was stopped wakes up and still says yes to everything.
    failoverDetector: true,
    sentinelRetryStrategy: (times) => Math.min(10 * 2 ** Math.min(times, 10), RECONNECT_MS_MAX),
    ...(username !== undefined && { sentinelUsername: username }),
    ...(password !== undefined && { sentinelPassword: password }),
    ...(options.tls !== undefined && { enableTLSForSentinelMode: true }),
  };
}

function clusterOptions(options: RedisStoreOptions, name: string): ClusterOptions {
  const { retryStrategy: clusterRetryStrategy, enableOfflineQueue: _, ...redisOptions } = commonOptions(options, name);
  return {
    redisOptions,
    clusterRetryStrategy: clusterRetryStrategy as (times: number) => number,
    enableOfflineQueue: false,
    // A command whose connection broke may have been carried out: don't let the library send it again.
    retryDelayOnFailover: 0,
    slotsRefreshInterval: SLOTS_REFRESH_MS,
  };
}
