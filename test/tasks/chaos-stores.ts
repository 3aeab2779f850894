import { setTimeout as wait } from 'node:timers/promises';
import { startPgBouncer } from '../servers/pgbouncer.ts';
import { startPostgresPair } from '../servers/postgres-pair.ts';
import { type Address, startProxy } from '../servers/proxy.ts';
import { query } from '../servers/query.ts';
import { ask, type RedisServer, startRedis } from '../servers/redis.ts';
import type { SteppedClock } from '../servers/stepped-clock.ts';
import { temporaryFolder } from './child.ts';

/** Somewhere to keep tasks whose servers, connections and clock fail. */
export interface ChaosStore extends AsyncDisposable {
  /** The current location, for `openStore`. */
  readonly location: string;
  /** One address for everything, and the `location` for clients that use another address. */
  readonly network?: { readonly address: Address; locationAt(address: Address, bus?: Address): string };
  /** The Redis of a queue in front of it, if there is one. */
  readonly front?: Address;
  /** The Redis of its bus, if there is one. */
  readonly bus?: Address;
  /** How far the servers' clock moves after the last fault: what may wait longest then starts at once. */
  readonly healAheadMs?: number;
  /** Faults of the servers, by name. Each of them is repaired again. */
  readonly faults: Readonly<Record<string, () => Promise<void>>>;
  /** Faults that it cannot have, and why. */
  readonly cannot: Readonly<Record<string, string>>;
}

export interface ChaosStoreKind {
  readonly name: string;
  open(clock: SteppedClock): Promise<ChaosStore>;
}

/** Longer than the leases of campaigns. */
const FREEZE_MS = 1_500;
/** How long an operation of campaigns waits for its answer. */
const TIMEOUT_MS = 2_000;
/** How long both sides take to close a connection without traffic. */
const HALF_OPEN_MS = 3_000;

const ONE_FILE = 'a file has no server, connection or replica';

export const sqlite: ChaosStoreKind = {
  name: 'SQLite',
  open() {
    const folder = temporaryFolder();
    return Promise.resolve({
      location: folder.file,
      faults: {},
      cannot: {
        restart: ONE_FILE,
        freeze: ONE_FILE,
        'half-open': ONE_FILE,
        'cut off': ONE_FILE,
        failover: ONE_FILE,
      },
      [Symbol.asyncDispose]: () => Promise.resolve(folder[Symbol.dispose]()),
    });
  },
};

export const postgres: ChaosStoreKind = { name: 'Postgres', open: ({ env }) => openPair(env) };

/** With a bus on Redis, which fails too. */
export const postgresWithBus: ChaosStoreKind = { name: 'Redis', open: ({ env }) => openWithBus(env) };

/** The same behind a pooler that shares connections, so that nobody can listen on them. */
export const postgresPooled: ChaosStoreKind = {
  name: 'PgBouncer',
  open: ({ env }) => openWithBus(env, (url) => startPgBouncer({ url }, 'transaction')),
};

type Pool = (url: string) => Promise<AsyncDisposable & { readonly url: string }>;

async function openPair(
  env: NodeJS.ProcessEnv,
  pool?: Pool,
): Promise<ChaosStore & Required<Pick<ChaosStore, 'network'>>> {
  const pair = await startPostgresPair({ env });
  const network = await startProxy(pair.address);
  const pooler = await pool?.(pair.urlAt(network.address));
  const timeouts = { statementTimeoutMs: TIMEOUT_MS, connectTimeoutMs: TIMEOUT_MS };
  const address = pooler === undefined ? network.address : toAddress(pooler.url);
  const locationAt = (at: Address, bus?: Address): string =>
    JSON.stringify({
      backend: 'postgres',
      url: pair.urlAt(at),
      ...timeouts,
      ...(bus && { bus: `redis://${bus.host}:${bus.port}` }),
    });
  return {
    location: locationAt(address),
    network: { address, locationAt },
    faults: {
      'crash the server': () => pair.primary.restart('immediate'),
      'restart the server': () => pair.primary.restart('fast'),
      'freeze the server': async () => {
        await pair.primary.pause();
        await wait(FREEZE_MS);
        await pair.primary.resume();
      },
      'cut all connections': async () => {
        const others = 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()';
        await query(pair.primary.url, others);
      },
      'half-open connections': async () => {
        network.freeze();
        await wait(HALF_OPEN_MS);
        network.endFrozen();
      },
      'fail over to the standby': async () => {
        await pair.failOver((to) => network.redirect(to));
      },
    },
    cannot: {},
    async [Symbol.asyncDispose]() {
      await pooler?.[Symbol.asyncDispose]();
      await network[Symbol.asyncDispose]();
      await pair[Symbol.asyncDispose]();
    },
  };
}

async function openWithBus(env: NodeJS.ProcessEnv, pool?: Pool): Promise<ChaosStore> {
  const store = await openPair(env, pool);
  const redis = await startRedis({ env, appendfsync: 'none' });
  const bus = { host: '127.0.0.1', port: redis.port };
  return {
    ...store,
    bus,
    location: store.network.locationAt(store.network.address, bus),
    faults: {
      ...store.faults,
      'restart the bus': async () => {
        await redis.kill('SIGKILL');
        await redis.start();
      },
      'freeze the bus': () => freeze(redis),
      'cut the connections of the bus': () => cutAll(redis),
    },
    async [Symbol.asyncDispose]() {
      await redis[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

function toAddress(url: string): Address {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}

export const stores: readonly ChaosStoreKind[] = [sqlite, postgres];

/** The kind of that name, or all of them. */
export function chaosStoresNamed(
  name: string | undefined,
  kinds: readonly ChaosStoreKind[] = stores,
): readonly ChaosStoreKind[] {
  const named = kinds.filter((kind) => name === undefined || kind.name.toLowerCase() === name.toLowerCase());
  if (named.length > 0) return named;
  throw new TypeError(`'${name}' is none of ${kinds.map((kind) => kind.name.toLowerCase()).join(', ')}`);
}

export async function freeze(server: RedisServer): Promise<void> {
  server.process.kill('SIGSTOP');
  await wait(FREEZE_MS);
  server.process.kill('SIGCONT');
}

export async function cutAll({ port }: RedisServer): Promise<void> {
  for (const type of ['normal', 'pubsub']) await ask(port, 'CLIENT', 'KILL', 'TYPE', type);
}
