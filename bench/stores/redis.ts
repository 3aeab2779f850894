import { Redis } from 'ioredis';
import type { RedisStoreOptions } from '../../packages/tasks/src/stores/redis/options.ts';
import { ask, startRedis } from '../../test/servers/redis.ts';
import type { Bare, BenchCase } from './bare.ts';

/** A single Redis with an append-only file, flushed every second. */
export async function startRedisCase(): Promise<BenchCase> {
  const server = await startRedis({ appendfsync: 'everysec' });
  const config = { backend: 'redis', url: server.url } as const;
  const bare = createBareRedis(config);
  const info = async (section: string, field: string): Promise<number> =>
    Number(new RegExp(`${field}:([\\d.]+)`).exec(await ask(server.port, 'INFO', section))?.[1]);
  return {
    name: 'redis',
    config,
    bare,
    cpuSeconds: async () => (await info('cpu', 'used_cpu_user')) + (await info('cpu', 'used_cpu_sys')),
    commands: () => redisCommands(server.port),
    logBytes: () => info('persistence', 'aof_current_size'),
    memoryBytes: () => info('memory', 'used_memory'),
    taskBytes: () => measureTasks(server.url),
    async [Symbol.asyncDispose]() {
      await bare[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

const SCANNED = 1_000;
/** Journals and inputs are as large as users make them. */
const OF_USERS = /[}:](?:journal|inputs):/;

async function measureTasks(url: string): Promise<number> {
  const client = new Redis(url);
  let bytes = 0;
  for (let cursor: string | undefined; cursor !== '0'; ) {
    const [next, keys] = await client.scan(cursor ?? '0', 'COUNT', SCANNED);
    const reading = client.pipeline();
    for (const key of keys) if (!OF_USERS.test(key)) reading.memory('USAGE', key, 'SAMPLES', 0);
    for (const [, size] of (await reading.exec()) ?? []) bytes += Number(size ?? 0);
    cursor = next;
  }
  client.disconnect();
  return bytes;
}

/** Commands of clients. The server also counts commands that scripts call. */
const SENT =
  /^cmdstat_(?:fcall|fcall_ro|evalsha|eval|ping|ssubscribe|subscribe|cluster\|\w+|(?:script|function)\|\w+):calls=(\d+)/gm;

/** How many commands clients have sent to a server so far. */
export async function redisCommands(port: number): Promise<number> {
  const stats = await ask(port, 'INFO', 'commandstats');
  return [...stats.matchAll(SENT)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

/** XADD, XREAD and HGET: the path of a cancel without its work. */
export function createBareRedis({ url }: Pick<RedisStoreOptions, 'url'>): Bare {
  const [address = ''] = [url].flat();
  const [commands, reader] = [new Redis(address), new Redis(address)];
  let subscriber: Redis | undefined;
  let closed = false;
  const read = async (name: string, onRing: () => void): Promise<void> => {
    for (let last = '$'; ; ) {
      const reply = await reader.xread('BLOCK', 0, 'STREAMS', name, last);
      for (const [id] of reply?.[0]?.[1] ?? []) {
        last = id;
        await commands.hget(`${name}:record`, 'status');
        onRing();
      }
    }
  };
  return {
    async ring(name) {
      await commands.xadd(name, 'MAXLEN', '~', 10_000, '*', 'id', 'x');
    },
    async writeAndRing(name) {
      const step = commands.multi().hset(`${name}:record`, 'status', 'cancelling');
      await step.xadd(name, 'MAXLEN', '~', 10_000, '*', 'id', 'x').exec();
    },
    async listen(name, onRing) {
      await commands.hset(`${name}:record`, 'status', 'running');
      read(name, onRing).catch((error: unknown) => {
        if (!closed) process.emitWarning(error as Error);
      });
    },
    async publish(name, text) {
      await commands.publish(name, text);
    },
    async subscribe(name, onText) {
      subscriber ??= new Redis(address);
      subscriber.on('message', (channel, text) => channel === name && onText(text));
      await subscriber.subscribe(name);
    },
    async write(key) {
      await commands.hset(key, 'status', 'running', 'at', '1');
    },
    [Symbol.asyncDispose]() {
      closed = true;
      for (const client of [commands, reader, subscriber]) client?.disconnect();
      return Promise.resolve();
    },
  };
}
