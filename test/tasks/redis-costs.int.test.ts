import type { TaskStore } from '@whoa/tasks';
import { createRedisStore } from '@whoa/tasks/internal';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type BorrowedServer, borrowRedis } from '../servers/borrow.ts';
import { create, running } from './held-task.ts';

let server: BorrowedServer;
let redis: Redis;

beforeAll(async () => {
  server = await borrowRedis();
  redis = new Redis(server.port, '127.0.0.1');
});

afterAll(async () => {
  redis.disconnect();
  await server[Symbol.asyncDispose]();
});

beforeEach(() => redis.flushall());

/** Counts the commands that the server executes for some work, including those inside scripts. */
async function countCommands(work: () => Promise<unknown>): Promise<number> {
  // The first time that the server sees a script.
  await work();
  await redis.config('RESETSTAT');
  await work();
  const counts = [...(await redis.info('commandstats')).matchAll(/^cmdstat_(\S+):calls=(\d+)/gmu)];
  const own = counts.filter(([, name]) => !name!.startsWith('config') && name !== 'info');
  return own.reduce((sum, [, , calls]) => sum + Number(calls), 0);
}

async function createMany(store: TaskStore, count: number, rest: Parameters<typeof create>[1]): Promise<void> {
  for (let i = 0; i < count; i += 50) await Promise.all(Array.from({ length: 50 }, () => create(store, rest)));
}

test('a page costs the same no matter how many tasks there are', async () => {
  await using store = createRedisStore({ url: server.url });
  await createMany(store, 1_000, { conversation: 'c' });
  const pages = [{}, { status: 'cancelled' }, { conversation: 'c' }] as const;
  const costs = async (): Promise<number[]> => {
    const counts: number[] = [];
    for (const page of pages)
      counts.push(await countCommands(() => store.list({ tenant: 'acme', limit: 10, ...page })));
    return counts;
  };
  const few = await costs();
  await createMany(store, 1_000, { conversation: 'c' });
  expect(await costs()).toEqual(few);
});

test('a message that is held back costs the same no matter how many are held back before it', async () => {
  await using store = createRedisStore({ url: server.url });
  const say = (): Promise<unknown> => create(store, { conversation: 'c', debounceMs: 600_000 });
  await say();
  const first = await countCommands(say);
  for (let i = 0; i < 300; i++) await say();
  expect(await countCommands(say)).toBe(first);
});

test('tasks of agents without workers cost the workers of other agents nothing', async () => {
  await using store = createRedisStore({ url: server.url });
  const request = { domain: 0, worker: 'w', leaseMs: 60_000, takeNumber: 1, agents: ['mine'], limit: 10 };
  let takes = 0;
  const take = (): Promise<unknown> => store.take({ ...request, session: 's', claim: `claim-${++takes}` });
  const alone = await countCommands(take);
  await createMany(store, 500, { agent: 'nobody' });
  expect(await countCommands(take)).toBe(alone);
});

test('the end of a plain task takes the short path', async () => {
  await using store = createRedisStore({ url: server.url });
  const ends: (() => Promise<unknown>)[] = [];
  for (let i = 0; i < 2; i++) {
    const { by } = await running(store);
    ends.push(() => store.finish(by, { status: 'success' }));
  }
  // The script, the clock, the layout, the task; then eight changes and a message.
  expect(await countCommands(() => ends.pop()!())).toBe(12);
});

test('a small task that has ended takes at most 2 KB', async () => {
  await using store = createRedisStore({ url: server.url });
  const usedMemory = async (): Promise<number> => Number(/^used_memory:(\d+)/mu.exec(await redis.info('memory'))![1]);
  const live = async (): Promise<void> => {
    const { by } = await running(store);
    await store.append(by, {
      after: 0,
      events: [
        { type: 'said', text: 'hello' },
        { type: 'said', text: 'bye' },
      ],
    });
    await store.finish(by, { status: 'success', answer: 'done' });
  };
  await live();
  const before = await usedMemory();
  for (let i = 0; i < 500; i++) await live();
  expect(((await usedMemory()) - before) / 500).toBeLessThan(2_048);
});

test('operators’ reads cost the same no matter how many tenants wait and how many tasks a worker holds', async () => {
  await using store = createRedisStore({ url: server.url });
  const request = { domain: 0, session: 's', worker: 'w', leaseMs: 60_000, agents: ['mine'], limit: 100 };
  const fill = async (prefix: string, number: number): Promise<void> => {
    await createMany(store, 100, { agent: 'mine' });
    await store.take({ ...request, takeNumber: number, claim: `c${number}` });
    const tenants = Array.from({ length: 250 }, (_, i) => `${prefix}${i}`);
    await Promise.all(tenants.map((tenant) => create(store, { tenant, agent: 'waiting' })));
  };
  const costs = async (): Promise<number[]> => [
    await countCommands(() => store.queues({ limit: 1_000 })),
    await countCommands(() => store.workers()),
    await countCommands(() => store.counts({ tenant: 't1' })),
  ];
  await fill('t', 1);
  const before = await costs();
  expect(Math.max(...before)).toBeLessThan(5 * 101);
  await fill('u', 2);
  expect(await costs()).toEqual(before);
  const [{ holds, tasks } = { holds: 0, tasks: [] }] = (await store.workers()).workers;
  expect([holds, new Set(tasks).size]).toEqual([200, 100]);
});
