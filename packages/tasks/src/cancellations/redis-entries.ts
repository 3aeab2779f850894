import type { Redis } from 'ioredis';
import { RedisBus } from '../bus/redis-bus.ts';
import { StoreSetupError } from '../errors.ts';
import { type Entries, type Entry, KEPT_MS, TIMEOUT_MS } from './entries.ts';

interface RedisEntriesOptions {
  readonly url: string;
  readonly prefix?: string | undefined;
}

const FIELDS = ['status', 'cancel', 'ended'] as const;
const MAX_RECONNECT_MS = 500;

/** Entries on a Redis server: a hash for each task, and one channel. */
export function createRedisEntries({ url, prefix = 'whoa' }: RedisEntriesOptions): Entries {
  let opened: Promise<Redis> | undefined;
  const commands = (): Promise<Redis> => (opened ??= connect(url));
  const toKey = (taskId: string): string => `${prefix}:cancellation:${taskId}`;
  return {
    async write(taskId, field, value) {
      const key = toKey(taskId);
      const steps = (await commands()).multi();
      if (field === 'status') steps.hset(key, field, value);
      else steps.hsetnx(key, field, value);
      const replies =
        (await steps
          .pexpire(key, KEPT_MS)
          .hmget(key, ...FIELDS)
          .exec()) ?? [];
      const failed = replies.find(([error]) => error !== null);
      if (failed !== undefined) throw failed[0]!;
      return toEntry(replies[2]![1] as (string | null)[])!;
    },
    async read(taskId) {
      return toEntry(await (await commands()).hmget(toKey(taskId), ...FIELDS));
    },
    openBus: () => new RedisBus({ url }, `${prefix}:cancellations`),
    async close() {
      (await opened?.catch(() => undefined))?.disconnect();
    },
  };
}

function toEntry(values: readonly (string | null)[]): Entry | undefined {
  const known = FIELDS.flatMap((name, i) => (values[i] === null ? [] : [[name, values[i]]]));
  return known.length === 0 ? undefined : (Object.fromEntries(known) as Entry);
}

async function connect(url: string): Promise<Redis> {
  const { Redis: Client } = await import('ioredis').catch((cause: unknown) => {
    throw new StoreSetupError("Cancels on Redis need the package 'ioredis'; install it: npm install ioredis", {
      cause,
    });
  });
  const client = new Client(url, {
    connectionName: 'whoa',
    // Whoever asks must know soon that the server is away: the work continues meanwhile.
    commandTimeout: TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: (times) => Math.min(50 * times, MAX_RECONNECT_MS),
  });
  // Without a listener the library writes to the console. The failing call reports the error.
  client.on('error', () => {});
  return client;
}
