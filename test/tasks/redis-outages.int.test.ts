import { mkdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { createRedisStore } from '@whoa/tasks/internal';
import { describe, expect, test } from 'vitest';
import { startProxy } from '../servers/proxy.ts';
import { ask, startRedis, startRedisCluster, startRedisSentinels } from '../servers/redis.ts';
import { failure } from './failure.ts';
import { create, running } from './held-task.ts';

const TENANT = 'acme';

describe('a connection that is dead without a word', () => {
  test('a connection is dropped when a command times out, and the next command works on a new one', async () => {
    await using server = await startRedis();
    await using proxy = await startProxy({ host: '127.0.0.1', port: server.port });
    await using store = createRedisStore({ url: `redis://127.0.0.1:${proxy.port}`, timeoutMs: 500 });
    const { ref } = await running(store);
    proxy.freeze();
    await expect(store.cancel(ref)).rejects.toMatchObject({ code: 'UNKNOWN_OUTCOME' });
    expect(await store.cancel(ref)).toMatchObject({ result: 'accepted' });
  });

  test('a store that only listens drops a dead connection too, and its listeners are asked to look', async () => {
    await using server = await startRedis();
    await using proxy = await startProxy({ host: '127.0.0.1', port: server.port });
    await using store = createRedisStore({ url: `redis://127.0.0.1:${proxy.port}`, timeoutMs: 500 });
    await using direct = createRedisStore({ url: server.url });
    const heard: string[] = [];
    await store.watch({ worker: 'w' }, ({ type }) => heard.push(type));
    proxy.freeze();
    await expect.poll(() => heard, { timeout: 25_000 }).toEqual(['resync']);
    const { ref } = await running(direct);
    await direct.cancel(ref);
    await expect.poll(() => heard).toContain('cancel');
  }, 40_000);
});

test('out of memory: what stops, keeps or ends a task works, and what adds to it is busy in words', async () => {
  await using server = await startRedis({ appendfsync: 'none' });
  await using store = createRedisStore({ url: server.url, timeoutMs: 1_500 });
  const [one, two, three] = [await running(store), await running(store), await create(store)];
  await ask(server.port, 'CONFIG', 'SET', 'maxmemory', '1mb');
  const busy = /^STORE_BUSY: .*raise maxmemory/;
  expect(await failure(create(store))).toMatch(busy);
  expect(await failure(store.append(one.by, { after: 0, events: ['x'] }))).toMatch(busy);
  expect(await store.heartbeat({ domain: 0, session: one.by.session, count: 1 })).toMatchObject({ result: 'alive' });
  expect(await store.cancel(one.ref)).toMatchObject({ result: 'accepted' });
  expect(await store.finish(one.by, { status: 'success' })).toMatchObject({ status: 'cancelled' });
  expect(await store.release(two.by)).toEqual({ result: 'released' });
  expect(await store.cancel(three)).toMatchObject({ status: 'cancelled' });
  await using late = createRedisStore({ url: server.url, timeoutMs: 1_500 });
  expect(await late.cancel(two.ref)).toMatchObject({ status: 'cancelled' });
});

test('a server that cannot save is busy in words, and works again when it can', async () => {
  await using server = await startRedis({ appendfsync: 'none', config: [['save', '3600 1']] });
  await using store = createRedisStore({ url: server.url, timeoutMs: 1_500 });
  const { ref } = await running(store);
  const folder = (await ask(server.port, 'CONFIG', 'GET', 'dir')).split(',')[1]!;
  // A folder of that name, which no file can replace.
  const inTheWay = join(folder, 'dump.rdb');
  mkdirSync(inTheWay);
  await ask(server.port, 'BGSAVE');
  await expect.poll(() => ask(server.port, 'INFO', 'persistence')).toContain('rdb_last_bgsave_status:err');
  const busy = /^STORE_BUSY: .*MISCONF.*free the disk/s;
  expect(await failure(store.cancel(ref))).toMatch(busy);
  expect(await failure(create(store))).toMatch(busy);
  expect((await store.get(ref))?.status).toBe('running');
  rmdirSync(inTheWay);
  await ask(server.port, 'BGSAVE');
  await expect.poll(() => ask(server.port, 'INFO', 'persistence')).toContain('rdb_last_bgsave_status:ok');
  expect(await store.cancel(ref)).toMatchObject({ result: 'accepted' });
});

describe('the layout', () => {
  test('the first client writes the layout, and one that disagrees is rejected with an error', async () => {
    await using server = await startRedis();
    await using first = createRedisStore({ url: server.url, shards: 4 });
    const tasks = await Promise.all(Array.from({ length: 20 }, () => create(first)));
    await using second = createRedisStore({ url: server.url, shards: 8 });
    const refused = /^STORE_SETUP: .*shards: 4/;
    expect(await failure(create(second))).toMatch(refused);
    expect(await failure(second.get(tasks[0]!))).toMatch(refused);
    expect(await failure(second.watch({ worker: 'w' }, () => {}))).toMatch(refused);
    await using third = createRedisStore({ url: server.url, shards: 4 });
    expect((await third.list({ tenant: TENANT })).tasks).toHaveLength(20);
    for (const { id, tenant } of tasks) expect(await third.get({ id, tenant })).toMatchObject({ id });
    expect(await third.get({ tenant: TENANT, id: 'tzz-nothing' })).toBeUndefined();
  });

  test('a layout of another format is rejected with an error', async () => {
    await using server = await startRedis();
    await ask(server.port, 'HSET', 'whoa:{s0}:layout', 'format', '2', 'shards', '1');
    await using store = createRedisStore({ url: server.url });
    expect(await failure(create(store))).toContain('format 2');
  });

  test('every move reads the layout: a process of an older format cannot write once a shard has another', async () => {
    await using server = await startRedis();
    await using store = createRedisStore({ url: server.url, shards: 2 });
    const tasks = await Promise.all(Array.from({ length: 20 }, () => create(store)));
    const held = await running(store);
    for (const shard of [0, 1]) await ask(server.port, 'HSET', `whoa:{s${shard}}:layout`, 'format', '2');
    const refused = /^STORE_SETUP: .*format 2/;
    for (const task of tasks) expect(await failure(store.cancel(task))).toMatch(refused);
    expect(await failure(create(store))).toMatch(refused);
    expect(await failure(store.get(held.ref))).toMatch(refused);
    expect(await failure(store.finish(held.by, { status: 'success' }))).toMatch(refused);
  });

  test('the layout is checked again after every lost connection', async () => {
    await using server = await startRedis({ appendfsync: 'none' });
    await using store = createRedisStore({ url: server.url, shards: 1 });
    await create(store);
    await ask(server.port, 'FLUSHALL');
    await ask(server.port, 'HSET', 'whoa:{s0}:layout', 'format', '1', 'shards', '2');
    await ask(server.port, 'CLIENT', 'KILL', 'TYPE', 'normal');
    // The client may not have noticed yet that its connection is closed.
    await create(store).catch(() => {});
    await expect(create(store)).rejects.toMatchObject({ code: 'STORE_SETUP' });
  });

  test('the layout has 16 shards on a Cluster by default, and every client finds them', async () => {
    await using cluster = await startRedisCluster();
    await using first = createRedisStore({ url: cluster.urls, cluster: true });
    await Promise.all(Array.from({ length: 40 }, () => create(first)));
    await using second = createRedisStore({ url: cluster.urls[2]!, cluster: true });
    const { tasks } = await second.list({ tenant: TENANT });
    expect(tasks).toHaveLength(40);
    expect(new Set(tasks.map(({ id }) => id.split('-')[0])).size).toBeGreaterThan(8);
    await using third = createRedisStore({ url: cluster.urls, cluster: true, shards: 64 });
    await expect(create(third)).rejects.toMatchObject({ code: 'STORE_SETUP' });
  });

  test('the layout is the same behind Sentinels', async () => {
    await using sentinels = await startRedisSentinels();
    const location = { url: sentinels.urls, sentinel: { name: sentinels.name } };
    await using first = createRedisStore({ ...location, shards: 2 });
    await create(first);
    await using second = createRedisStore({ ...location, shards: 3 });
    await expect(create(second)).rejects.toMatchObject({ code: 'STORE_SETUP' });
  });
});

test('no key of the store is the one its scripts are routed by: it must never exist', async () => {
  await using server = await startRedis();
  await using store = createRedisStore({ url: server.url });
  const { ref, by } = await running(store);
  await store.append(by, { after: 0, events: ['x'] });
  await store.send(ref, { type: 'steer', message: 'x' });
  await store.finish(by, { status: 'success' });
  expect(await ask(server.port, 'EXISTS', 'whoa:{s0}:')).toBe('0');
  await ask(server.port, 'SET', 'whoa:{s0}:', 'x');
  await using late = createRedisStore({ url: server.url });
  expect(await failure(create(late))).toContain("'whoa:{s0}:'");
});

test.each(['allkeys-lru', 'volatile-ttl'])(
  'a server that evicts (%s) is rejected until it no longer does',
  async (policy) => {
    await using server = await startRedis({ config: [['maxmemory-policy', policy]] });
    await using store = createRedisStore({ url: server.url });
    expect(await failure(create(store))).toContain(`maxmemory-policy ${policy}`);
    await ask(server.port, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    await create(store);
  },
);

test('every node of a Cluster must evict nothing', async () => {
  await using cluster = await startRedisCluster();
  await ask(cluster.servers[2]!.port, 'CONFIG', 'SET', 'maxmemory-policy', 'allkeys-random');
  await using store = createRedisStore({ url: cluster.urls, cluster: true });
  const results = await Promise.allSettled(Array.from({ length: 40 }, () => create(store)));
  const refused = results.filter(({ status }) => status === 'rejected');
  expect(refused.length).toBeGreaterThan(0);
  for (const result of refused) expect(result).toMatchObject({ reason: { code: 'STORE_SETUP' } });
});
