import { setTimeout as wait } from 'node:timers/promises';
import { startPostgresPair } from '../servers/postgres-pair.ts';
import { type Address, startProxy } from '../servers/proxy.ts';
import { query } from '../servers/query.ts';
import { ask, type RedisServer, startRedis, startRedisCluster, startRedisSentinels } from '../servers/redis.ts';
import type { SteppedClock } from '../servers/stepped-clock.ts';
import { temporaryFolder } from './child.ts';

/** Somewhere to keep tasks whose servers, connections and clock fail. */
export interface ChaosStore extends AsyncDisposable {
  /** The current location, for `openStore`. */
  readonly location: string;
  /** One address for everything, and the `location` for clients that use another address. */
  readonly network?: { readonly address: Address; locationAt(address: Address): string };
  /** The Redis of a queue in front of it, if there is one. */
  readonly front?: Address;
  /** Faults of the servers, by name. Each of them is repaired again. */
  readonly faults: Readonly<Record<string, () => Promise<void>>>;
  /**
   * Spreads tasks over more shards, and rejects clients that still have the old `location`. False when there are
   * enough.
   */
  readonly grow?: () => boolean;
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
const NAMED_SERVERS = 'its servers name each other: see redis';
const ONE_DOMAIN = 'all of a database is one domain';

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
        reshard: ONE_DOMAIN,
      },
      [Symbol.asyncDispose]: () => Promise.resolve(folder[Symbol.dispose]()),
    });
  },
};

export const redis: ChaosStoreKind = {
  name: 'Redis',
  async open({ env }) {
    const server = await startRedis({ env });
    const network = await startProxy({ host: '127.0.0.1', port: server.port });
    const shards = growing([1, 2, 4, 8]);
    const locationAt = ({ host, port }: Address): string =>
      JSON.stringify({
        backend: 'redis',
        url: `redis://${host}:${port}`,
        timeoutMs: TIMEOUT_MS,
        shards: shards.now(),
      });
    return {
      get location() {
        return locationAt(network.address);
      },
      network: { address: network.address, locationAt },
      faults: {
        ...createFaults(() => server),
        'half-open connections': async () => {
          network.freeze();
          await wait(HALF_OPEN_MS);
          network.endFrozen();
        },
      },
      grow: shards.grow,
      cannot: { failover: 'one server has no replica: see sentinel and cluster' },
      async [Symbol.asyncDispose]() {
        await network[Symbol.asyncDispose]();
        await server[Symbol.asyncDispose]();
      },
    };
  },
};

/** Acknowledged writes are on both servers, and a replaced master accepts none. */
const CAREFUL = [
  ['min-replicas-to-write', '1'],
  ['min-replicas-max-lag', '2'],
] as const;

const sentinel: ChaosStoreKind = {
  name: 'Sentinel',
  async open({ env }) {
    const sentinels = await startRedisSentinels({ env, config: CAREFUL });
    const servers = [sentinels.master, sentinels.replica];
    const master = async (): Promise<RedisServer> => {
      const port = await sentinels.masterPort();
      return servers.find((server) => server.port === port)!;
    };
    const replaced = async (old: RedisServer): Promise<void> => {
      while ((await sentinels.masterPort()) === old.port) await wait(50);
    };
    const shards = growing([1, 2, 4]);
    const store = { url: sentinels.urls, sentinel: { name: sentinels.name }, replicas: { atLeast: 1 } };
    return {
      get location() {
        return JSON.stringify({ backend: 'redis', ...store, timeoutMs: TIMEOUT_MS, shards: shards.now() });
      },
      faults: {
        'fail over from a master that dies': async () => {
          const old = await master();
          await old.kill('SIGKILL');
          await replaced(old);
          await old.start();
          await isPaired(servers);
        },
        'fail over from a master that wakes again': async () => {
          const old = await master();
          old.process.kill('SIGSTOP');
          await replaced(old);
          old.process.kill('SIGCONT');
          await isPaired(servers);
        },
        'cut all connections': async () => cutAll(await master()),
      },
      grow: shards.grow,
      cannot: { 'half-open': NAMED_SERVERS, 'cut off': NAMED_SERVERS },
      [Symbol.asyncDispose]: () => sentinels[Symbol.asyncDispose](),
    };
  },
};

const cluster: ChaosStoreKind = {
  name: 'Cluster',
  async open({ env }) {
    const nodes = await startRedisCluster({ env, replicas: true });
    const shards = growing([4, 8, 16]);
    let turn = 0;
    const next = (): number => turn++;
    const anyMaster = async (): Promise<RedisServer> => {
      const masters = await nodes.masters();
      return masters[next() % masters.length]!;
    };
    return {
      get location() {
        const store = { url: nodes.urls, cluster: true, timeoutMs: TIMEOUT_MS, shards: shards.now() };
        return JSON.stringify({ backend: 'redis', ...store });
      },
      faults: {
        'move a slot': async () => {
          const tag = `whoa:{s${(next() % shards.now().at(-1)!).toString(36)}}:`;
          const move = await nodes.moveSlot(Number(await ask(nodes.servers[0]!.port, 'CLUSTER', 'KEYSLOT', tag)));
          await wait(100);
          await move.finish();
        },
        'fail over to a replica': async () => nodes.failOver(await anyMaster()),
        'freeze a node': async () => freeze(await anyMaster()),
        'cut all connections': async () => {
          for (const server of nodes.servers) await cutAll(server);
        },
      },
      grow: shards.grow,
      cannot: {
        'half-open': NAMED_SERVERS,
        'cut off': NAMED_SERVERS,
        'failover from a master that dies':
          'replication to a replica is not awaited, so that loses what was acknowledged',
      },
      [Symbol.asyncDispose]: () => nodes[Symbol.asyncDispose](),
    };
  },
};

export const postgres: ChaosStoreKind = {
  name: 'Postgres',
  async open({ env }) {
    const pair = await startPostgresPair({ env });
    const network = await startProxy(pair.address);
    const timeouts = { statementTimeoutMs: TIMEOUT_MS, connectTimeoutMs: TIMEOUT_MS };
    const locationAt = (address: Address): string =>
      JSON.stringify({ backend: 'postgres', url: pair.urlAt(address), ...timeouts });
    return {
      location: locationAt(network.address),
      network: { address: network.address, locationAt },
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
          await pair.failOver((address) => network.redirect(address));
        },
      },
      cannot: { reshard: ONE_DOMAIN },
      async [Symbol.asyncDispose]() {
        await network[Symbol.asyncDispose]();
        await pair[Symbol.asyncDispose]();
      },
    };
  },
};

export const stores: readonly ChaosStoreKind[] = [sqlite, redis, sentinel, cluster, postgres];

/** The kind of that name, or all of them. */
export function chaosStoresNamed(
  name: string | undefined,
  kinds: readonly ChaosStoreKind[] = stores,
): readonly ChaosStoreKind[] {
  const named = kinds.filter((kind) => name === undefined || kind.name.toLowerCase() === name.toLowerCase());
  if (named.length > 0) return named;
  throw new TypeError(`'${name}' is none of ${kinds.map((kind) => kind.name.toLowerCase()).join(', ')}`);
}

/** The number of shards, from a list that is followed whenever it grows. */
function growing(counts: readonly number[]): { now: () => readonly number[]; grow: () => boolean } {
  let grown = 1;
  return {
    now: () => counts.slice(0, grown),
    grow: () => grown < counts.length && ++grown > 0,
  };
}

function createFaults(server: () => RedisServer): Record<string, () => Promise<void>> {
  return {
    'restart the server': async () => {
      await server().kill('SIGKILL');
      await server().start();
    },
    'freeze the server': () => freeze(server()),
    'cut all connections': () => cutAll(server()),
  };
}

export async function freeze(server: RedisServer): Promise<void> {
  server.process.kill('SIGSTOP');
  await wait(FREEZE_MS);
  server.process.kill('SIGCONT');
}

export async function cutAll({ port }: RedisServer): Promise<void> {
  for (const type of ['normal', 'pubsub']) await ask(port, 'CLIENT', 'KILL', 'TYPE', type);
}

/** One of the two follows the other, and has all of it. */
async function isPaired(servers: readonly RedisServer[]): Promise<void> {
  for (;;) {
    const answers = await Promise.all(servers.map(({ port }) => ask(port, 'INFO', 'replication')));
    if (answers.some((answer) => answer.includes('role:slave') && answer.includes('master_link_status:up'))) return;
    await wait(50);
  }
}
