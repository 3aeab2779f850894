import { setTimeout as wait } from 'node:timers/promises';
import type { TaskStore } from '@whoa/tasks';
import { createRedisStore } from '@whoa/tasks/internal';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ask, type RedisCluster, startRedisCluster } from '../servers/redis.ts';
import { failure } from './failure.ts';
import { claim, create, running } from './held-task.ts';
import { Ledger } from './ledger.ts';

const TENANT = 'acme';

describe('a Cluster of three masters', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  const open = (prefix: string, rest: object = {}): TaskStore =>
    createRedisStore({ url: cluster.urls, cluster: true, prefix, ...rest });
  const readSlot = async (prefix: string, shard = 's0'): Promise<number> =>
    Number(await ask(cluster.servers[0]!.port, 'CLUSTER', 'KEYSLOT', `${prefix}:{${shard}}:`));

  test('a shard that is being moved is busy, in words, and is whole before and after', async () => {
    // Only the store below has a short timeout: its requests are rejected immediately and never arrive.
    await using patient = open('moving', { shards: 1 });
    const keyed = await create(patient, { key: 'k' });
    const { ref, by } = await running(patient);
    await using store = open('moving', { shards: 1, timeoutMs: 1_000 });
    await expect.poll(() => store.get(ref).catch(() => undefined)).toBeDefined();
    const move = await cluster.moveSlot(await readSlot('moving'));
    const busy = /^STORE_BUSY: .*being moved to another node/;
    expect(await failure(store.get(ref))).toMatch(busy);
    expect(await failure(store.heartbeat({ domain: 0, session: by.session, count: 1 }))).toMatch(busy);
    expect(await failure(store.cancel(ref))).toMatch(busy);
    expect(await failure(store.finish(by, { status: 'success' }))).toMatch(busy);
    expect(await failure(create(store, { key: 'k' }))).toMatch(busy);
    expect(await ask(move.to, 'KEYS', 'moving:*')).toBe('');
    await move.finish();
    expect(await patient.cancel(ref)).toMatchObject({ result: 'accepted' });
    expect(await patient.create({ tenant: TENANT, agent: 'a', input: 1, key: 'k' })).toMatchObject({
      result: 'duplicate',
      task: { id: keyed.id },
    });
    expect(await patient.finish(by, { status: 'success' })).toMatchObject({ status: 'cancelled' });
    expect((await patient.list({ tenant: TENANT })).tasks).toHaveLength(2);
  });

  test('an operation that finds its shard moving waits until it has moved', async () => {
    await using store = open('waits', { shards: 1 });
    const { id } = await create(store);
    const move = await cluster.moveSlot(await readSlot('waits'));
    const cancelled = store.cancel({ tenant: TENANT, id });
    await wait(100);
    await move.finish();
    expect(await cancelled).toMatchObject({ result: 'accepted', status: 'cancelled' });
  });

  test('slots that move under load lose nothing that was acknowledged', async () => {
    await using store = open('load', { shards: 4, timeoutMs: 2_000 });
    const ledger = new Ledger();
    const working = ledger.work(store, 8);
    const workedOn = async (): Promise<void> => {
      const goal = ledger.acknowledged + 200;
      await expect.poll(() => ledger.acknowledged, { timeout: 20_000 }).toBeGreaterThan(goal);
    };
    await workedOn();
    for (let round = 0; round < 2; round++) {
      for (const shard of ['s0', 's1', 's2', 's3']) {
        const move = await cluster.moveSlot(await readSlot('load', shard));
        await wait(50);
        await move.finish();
        await workedOn();
      }
    }
    ledger.stop();
    await working;
    const { lost, unknown, examples } = await ledger.judge(store);
    expect({ lost, unknown, examples }).toEqual({ lost: 0, unknown: 0, examples: [] });
  });

  test('a listener follows a shard that moves, and learns that it may have missed something', async () => {
    await using store = open('heard', { shards: 2 });
    await using other = open('heard', { shards: 2 });
    const heard: string[] = [];
    await store.watch({ worker: 'w' }, (hint) => heard.push(hint.type));
    for (const shard of ['s0', 's1']) {
      const move = await cluster.moveSlot(await readSlot('heard', shard));
      await move.finish();
      const channel = `heard:{${shard}}:inbox:w`;
      await expect.poll(() => ask(move.to, 'PUBSUB', 'SHARDNUMSUB', channel)).toBe(`${channel},1`);
    }
    await expect.poll(() => heard).toContain('resync');
    for (let i = 0; i < 8; i++) {
      const { ref } = await running(other, { conversation: `${i}` });
      await other.cancel(ref);
    }
    await expect.poll(() => heard.filter((type) => type === 'cancel').length).toBe(8);
  });

  test('an idle store with 64 shards has one connection to each node, and asks nothing', async () => {
    await using store = open('idle', { shards: 64 });
    await store.watch({ worker: 'w' }, () => {});
    await store.watch({ tenant: TENANT }, () => {});
    await store.list({ tenant: TENANT });
    const admins = cluster.servers.map(({ port }) => new Redis(port));
    const ours = async (): Promise<number> => {
      const lists = await Promise.all(admins.map(async (admin) => String(await admin.call('CLIENT', 'LIST'))));
      return lists.flatMap((list) => list.split('\n')).filter((line) => line.includes(' name=whoa ')).length;
    };
    const commands = async (): Promise<number> => {
      const infos = await Promise.all(admins.map((admin) => admin.info('commandstats')));
      const calls = infos.flatMap((info) => [
        ...info.matchAll(/cmdstat_(?:cluster\|slots|fcall|fcall_ro|evalsha|eval):calls=(\d+)/g),
      ]);
      return calls.reduce((sum, [, count]) => sum + Number(count), 0);
    };
    await expect.poll(ours).toBe(3);
    const before = await commands();
    await wait(2_000);
    expect(await commands()).toBe(before);
    for (const admin of admins) admin.disconnect();
  });
});

test('a master of a Cluster that dies is replaced, and the store and its listeners go to its replica', async () => {
  await using cluster = await startRedisCluster({ replicas: true });
  await using store = createRedisStore({ url: cluster.urls, cluster: true, shards: 8, timeoutMs: 20_000 });
  const tasks = await Promise.all(Array.from({ length: 24 }, (_, i) => create(store, { conversation: `${i}` })));
  for (const { id } of tasks) await claim(store, id);
  const heard = new Set<string>();
  await store.watch({ worker: 'w' }, (hint) => hint.type === 'cancel' && heard.add(hint.id));
  const resynced = Promise.withResolvers<void>();
  await store.watch({ worker: 'w' }, (hint) => hint.type === 'resync' && resynced.resolve());
  await expect.poll(() => ask(cluster.servers[0]!.port, 'WAIT', '1', '1000')).toBe('1');
  await cluster.servers[0]!.kill('SIGKILL');
  await resynced.promise;
  const receipts = await Promise.all(tasks.map(({ id }) => store.cancel({ tenant: TENANT, id })));
  for (const receipt of receipts) expect(receipt.result).toMatch(/accepted|unchanged/);
  await expect.poll(() => heard.size, { timeout: 10_000 }).toBe(24);
});
