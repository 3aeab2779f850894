// Real Redis servers on free loopback ports, in temporary folders.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort } from './free-port.ts';

export interface RedisServerOptions {
  /** When a write is on the disk: immediately, within a second, never. */
  readonly appendfsync?: 'always' | 'everysec' | 'none';
  /** A TLS port in addition to the plain one, with this certificate. */
  readonly tls?: { readonly key: string; readonly cert: string };
  /** Further lines of configuration: `['maxmemory', '10mb']`. */
  readonly config?: readonly (readonly [string, string])[];
  readonly env?: NodeJS.ProcessEnv;
}

/** One server that can be stopped and started again on the same data. */
export interface RedisServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** The address of the TLS port, if there is one. */
  readonly tlsUrl: string | undefined;
  /** The process that runs now. */
  readonly process: ChildProcess;
  /** Ends it with a signal, and waits until it has ended. */
  kill(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
  start(): Promise<void>;
}

const START_MS = 20_000;

export async function startRedis({
  appendfsync = 'everysec',
  config = [],
  tls,
  env = process.env,
}: RedisServerOptions = {}): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-redis-'));
  const port = await freePort();
  const persistence =
    appendfsync === 'none' ? ['--appendonly', 'no'] : ['--appendonly', 'yes', '--appendfsync', appendfsync];
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', '', ...persistence];
  for (const [name, value] of config) args.push(`--${name}`, value);
  const tlsPort = tls && (await freePort());
  if (tls) {
    const files = ['--tls-key-file', tls.key, '--tls-cert-file', tls.cert, '--tls-ca-cert-file', tls.cert];
    args.push('--tls-port', `${tlsPort}`, '--tls-auth-clients', 'no', ...files);
  }
  let child: ChildProcess;
  const start = async (): Promise<void> => {
    child = spawn('redis-server', args, { stdio: 'ignore', env });
    await answers(port, child);
  };
  const kill = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    // A suspended process cannot handle other signals.
    child.kill('SIGCONT');
    await ended;
  };
  const end = async (): Promise<void> => {
    await kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
  await start().catch(async (error: unknown) => {
    await end();
    throw error;
  });
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    tlsUrl: tlsPort === undefined ? undefined : `rediss://127.0.0.1:${tlsPort}`,
    get process() {
      return child;
    },
    kill,
    start,
    [Symbol.asyncDispose]: end,
  };
}

export interface RedisCluster extends AsyncDisposable {
  /** Addresses of the initial masters. */
  readonly urls: readonly string[];
  readonly servers: readonly RedisServer[];
  /** Starts to move a slot from its server to the next. Meanwhile the server answers `ASK`. */
  moveSlot(slot: number): Promise<SlotMove>;
  /** The masters that have slots now. */
  masters(): Promise<readonly RedisServer[]>;
  /** Promotes a master's replica; nothing is lost. */
  failOver(master: RedisServer): Promise<void>;
}

interface SlotMove {
  /** The port of the server that the slot is moved to. */
  readonly to: number;
  /** Moves the keys, and assigns the slot. */
  finish(): Promise<void>;
}

const SLOTS = 16_384;

/** A Cluster of three masters, each with a replica if asked for. */
export async function startRedisCluster({
  replicas = false,
  ...options
}: RedisServerOptions & { readonly replicas?: boolean } = {}): Promise<RedisCluster> {
  const count = replicas ? 6 : 3;
  const nodes = await startNodes(count, options);
  const servers = nodes.map(({ server }) => server);
  const clients = servers.map((server) => new Redis(server.port, '127.0.0.1'));
  const size = Math.ceil(SLOTS / 3);
  for (const [i, client] of clients.slice(0, 3).entries()) {
    const last = Math.min(SLOTS, (i + 1) * size) - 1;
    await client.call('CLUSTER', 'ADDSLOTSRANGE', i * size, last);
    await client.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
  }
  for (const { server, bus } of nodes.slice(1)) {
    await clients[0]!.call('CLUSTER', 'MEET', '127.0.0.1', server.port, bus);
  }
  const everywhere = (...said: readonly string[]): Promise<void> =>
    until(async () => {
      const infos = await Promise.all(clients.map(async (client) => String(await client.call('CLUSTER', 'INFO'))));
      return infos.every((info) => said.every((line) => info.includes(line)));
    });
  await everywhere(`cluster_known_nodes:${count}`);
  for (const [i, client] of clients.slice(3).entries()) {
    const master = String(await clients[i]!.call('CLUSTER', 'MYID'));
    await until(async () => String(await client.call('CLUSTER', 'NODES')).includes(`${master} `));
    await client.call('CLUSTER', 'REPLICATE', master);
    await until(async () => (await client.info('replication')).includes('master_link_status:up'));
  }
  await everywhere('cluster_state:ok');
  for (const client of clients) client.disconnect();
  return {
    urls: servers.slice(0, 3).map(({ url }) => url),
    servers,
    moveSlot: async (slot) => moveSlot(await findMasters(servers), slot),
    masters: () => findMasters(servers),
    failOver: (master) => failOver(servers, master),
    async [Symbol.asyncDispose]() {
      await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()));
    },
  };
}

interface ClusterNode {
  readonly server: RedisServer;
  readonly bus: string;
}

/** Starts all nodes, or none: if one does not start, the others are ended. */
async function startNodes(count: number, options: RedisServerOptions): Promise<readonly ClusterNode[]> {
  const starts = await Promise.allSettled(Array.from({ length: count }, () => startNode(options)));
  const nodes = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  const failed = starts.find((start) => start.status === 'rejected');
  if (failed === undefined) return nodes;
  await Promise.all(nodes.map(({ server }) => server[Symbol.asyncDispose]()));
  throw failed.reason;
}

async function startNode(options: RedisServerOptions): Promise<ClusterNode> {
  const bus = `${await freePort()}`;
  const own = [
    ['cluster-enabled', 'yes'],
    ['cluster-port', bus],
    ['cluster-node-timeout', '2000'],
  ] as const;
  return { server: await startRedis({ ...options, config: [...own, ...(options.config ?? [])] }), bus };
}

type Node = [host: string, port: number];
type SlotRange = [first: number, last: number, master: Node, ...replicas: Node[]];

async function slotRanges({ port }: RedisServer): Promise<SlotRange[]> {
  const client = new Redis(port, '127.0.0.1');
  try {
    return (await client.call('CLUSTER', 'SLOTS')) as SlotRange[];
  } finally {
    client.disconnect();
  }
}

async function findMasters(servers: readonly RedisServer[]): Promise<readonly RedisServer[]> {
  const ports = new Set((await slotRanges(servers[0]!)).map(([, , [, port]]) => port));
  return servers.filter(({ port }) => ports.has(port));
}

async function failOver(servers: readonly RedisServer[], master: RedisServer): Promise<void> {
  const [, , , replica] = (await slotRanges(master)).find(([, , [, port]]) => port === master.port)!;
  await ask(replica![1], 'CLUSTER', 'FAILOVER');
  // Every node has learned of it, and the old master is a replica.
  await until(async () => {
    const masters = await Promise.all(servers.map(async (server) => slotRanges(server)));
    const isReplaced = masters.flat().every(([, , [, port]]) => port !== master.port);
    return isReplaced && (await ask(master.port, 'INFO', 'replication')).includes('master_link_status:up');
  });
}

async function moveSlot(servers: readonly RedisServer[], slot: number): Promise<SlotMove> {
  const clients = servers.map(({ port }) => new Redis(port, '127.0.0.1'));
  const ids = await Promise.all(clients.map(async (client) => String(await client.call('CLUSTER', 'MYID'))));
  const ranges = await slotRanges(servers[0]!);
  const [, , [, port]] = ranges.find(([first, last]) => first <= slot && slot <= last)!;
  const from = servers.findIndex((server) => server.port === port);
  const to = (from + 1) % servers.length;
  await clients[to]!.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', ids[from]!);
  await clients[from]!.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', ids[to]!);
  return {
    to: servers[to]!.port,
    async finish() {
      for (;;) {
        const keys = (await clients[from]!.call('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[];
        if (keys.length === 0) break;
        const target = ['127.0.0.1', servers[to]!.port, '', 0, 5_000, 'KEYS', ...keys] as const;
        await clients[from]!.call('MIGRATE', ...target);
      }
      for (const client of clients) await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', ids[to]!);
      for (const client of clients) client.disconnect();
    },
  };
}

export interface RedisSentinels extends AsyncDisposable {
  /** Addresses of the three Sentinels. */
  readonly urls: readonly string[];
  readonly name: string;
  readonly master: RedisServer;
  readonly replica: RedisServer;
  /** The connection for replication, from the first master to its replica. */
  readonly road: Road;
  /** The port of the master that the Sentinels agree on now. */
  masterPort(): Promise<number>;
}

/** A master, its replica, and three Sentinels that replace one by the other after a second. */
export async function startRedisSentinels(options: RedisServerOptions = {}): Promise<RedisSentinels> {
  const name = 'whoa-master';
  const master = await startRedis(options);
  const road = await openRoad(master.port);
  const follow = ['replicaof', `127.0.0.1 ${road.port}`] as const;
  const replica = await startRedis({ ...options, config: [follow, ...(options.config ?? [])] });
  await until(async () => (await ask(replica.port, 'INFO', 'replication')).includes('master_link_status:up'));
  const sentinels = await Promise.all([0, 1, 2].map(() => startSentinel(name, master.port)));
  const masterPort = async (): Promise<number> => {
    const address = await ask(sentinels[0]!.port, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name);
    return Number(address.split(',')[1]);
  };
  await until(async () => (await ask(sentinels[0]!.port, 'SENTINEL', 'CKQUORUM', name)).includes('OK 3'));
  await until(async () => (await ask(sentinels[0]!.port, 'SENTINEL', 'REPLICAS', name)).includes(`${replica.port}`));
  return {
    urls: sentinels.map(({ port }) => `redis://127.0.0.1:${port}`),
    name,
    master,
    replica,
    masterPort,
    road,
    async [Symbol.asyncDispose]() {
      road.close();
      await Promise.all(sentinels.map((one) => one[Symbol.asyncDispose]()));
      await Promise.all([master, replica].map((one) => one[Symbol.asyncDispose]()));
    },
  };
}

interface Road {
  readonly port: number;
  /** Nothing arrives after this; data in flight is held. */
  hold(): void;
  /** Data in flight is lost. */
  close(): void;
}

/** A stretch of network between two servers on which things can get stuck. */
async function openRoad(to: number): Promise<Road> {
  const sockets = new Set<Socket>();
  let isHeld = false;
  const server = createServer((near) => {
    const far = connect(to, '127.0.0.1');
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on('data', (chunk) => {
        if (!isHeld) other.write(chunk);
      });
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as { port: number }).port,
    hold() {
      isHeld = true;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

async function startSentinel(name: string, masterPort: number): Promise<AsyncDisposable & { port: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-sentinel-'));
  const port = await freePort();
  const file = join(folder, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel monitor ${name} 127.0.0.1 ${masterPort} 2`,
    `sentinel down-after-milliseconds ${name} 1000`,
    `sentinel failover-timeout ${name} 5000`,
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  const child = spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' });
  await answers(port, child);
  return {
    port,
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit');
      if (child.exitCode === null && child.kill('SIGKILL')) await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Sends a server one command, as an administrator would. */
export async function ask(port: number, ...command: readonly string[]): Promise<string> {
  const client = new Redis(port, '127.0.0.1', { retryStrategy: null, lazyConnect: true });
  client.on('error', () => {});
  try {
    await client.connect();
    return String(await client.call(...(command as [string, ...string[]])));
  } catch (error) {
    return String(error);
  } finally {
    client.disconnect();
  }
}

async function answers(port: number, child: ChildProcess): Promise<void> {
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`redis-server ended with ${child.exitCode} before it answered`);
    return (await ask(port, 'PING')) === 'PONG';
  });
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + START_MS;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`servers were not ready within ${START_MS} ms`);
    await wait(20);
  }
}
