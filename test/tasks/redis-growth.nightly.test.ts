import type { TaskStore } from '@whoa/tasks';
import { createRedisStore } from '@whoa/tasks/internal';
import { describe, expect, test } from 'vitest';
import { getShard } from '../../packages/tasks/src/id.ts';
import { openRedisStore } from '../../packages/tasks/src/stores/redis.ts';
import { startRedis, startRedisCluster } from '../servers/redis.ts';
import { failure } from './failure.ts';
import { claim, create } from './held-task.ts';

const TENANT = 'acme';
const names = Array.from({ length: 20 }, (_, i) => `name-${i}`);
const toShards = (tasks: readonly { readonly id: string }[]): Set<number> =>
  new Set(tasks.map(({ id }) => getShard(id)));

async function say(store: TaskStore, conversation: string, said: string): Promise<string> {
  const { id } = await create(store, { conversation });
  await store.finish(await claim(store, id), { status: 'success', newMessages: [{ role: 'user', content: said }] });
  return id;
}

describe('shards that have grown', () => {
  test('keep every task, and take new ones', async () => {
    await using server = await startRedis();
    const before = createRedisStore({ url: server.url });
    const old = await Promise.all(names.map(() => create(before)));
    await before[Symbol.asyncDispose]();
    await using grown = createRedisStore({ url: server.url, shards: [1, 4] });
    // Enough that each of four shards gets some: ids are random.
    const fresh = await Promise.all(Array.from({ length: 100 }, () => create(grown)));
    expect([grown.domains, toShards(old).size, toShards(fresh).size]).toEqual([4, 1, 4]);
    for (const { id } of [...old, ...fresh]) expect(await grown.get({ tenant: TENANT, id })).toMatchObject({ id });
    expect((await grown.list({ tenant: TENANT, limit: 1_000 })).tasks).toHaveLength(120);
    for (const task of old) expect(await grown.cancel(task)).toMatchObject({ result: 'accepted' });
    await using again = createRedisStore({ url: server.url, shards: [1, 4, 8] });
    const latest = await Promise.all(names.map(() => create(again)));
    for (const { id } of [...old, ...fresh, ...latest]) expect(await again.get({ tenant: TENANT, id })).toBeDefined();
  });

  test('leave a conversation where it is, and begin new ones anywhere', async () => {
    await using server = await startRedis();
    const before = createRedisStore({ url: server.url });
    await say(before, 'old', 'one');
    const current = await create(before, { conversation: 'live' });
    await before[Symbol.asyncDispose]();
    await using grown = createRedisStore({ url: server.url, shards: [1, 16] });
    expect(getShard(await say(grown, 'old', 'two'))).toBe(0);
    const ref = { tenant: TENANT, conversation: 'old' };
    expect((await grown.conversation(ref))?.history).toMatchObject([{ content: 'one' }, { content: 'two' }]);
    expect((await grown.list(ref)).tasks).toHaveLength(2);
    const next = await grown.create(
      { tenant: TENANT, agent: 'a', input: 'x', conversation: 'live' },
      { policy: 'queue' },
    );
    expect(next).toMatchObject({ result: 'created', task: { stage: 'queued' } });
    expect(await grown.cancel({ tenant: TENANT, conversation: 'live' })).toMatchObject({ result: 'accepted' });
    expect(await grown.get(current)).toMatchObject({ status: 'cancelled' });
    const fresh = await Promise.all(names.map((conversation) => create(grown, { conversation })));
    expect(toShards(fresh).size).toBeGreaterThan(4);
    for (const conversation of names) {
      expect(await grown.cancel({ tenant: TENANT, conversation })).toMatchObject({ result: 'accepted' });
      expect(await grown.conversation({ tenant: TENANT, conversation })).toMatchObject({ waiting: [] });
    }
  });

  test('know the keys of before', async () => {
    await using server = await startRedis();
    const before = createRedisStore({ url: server.url });
    const old = await create(before, { key: 'used' });
    await before[Symbol.asyncDispose]();
    await using grown = createRedisStore({ url: server.url, shards: [1, 16] });
    const again = { tenant: TENANT, agent: 'a', input: 'x', key: 'used' };
    expect(await grown.create(again)).toMatchObject({ result: 'duplicate', task: { id: old.id } });
    expect(await grown.find({ tenant: TENANT, key: 'used' })).toMatchObject({ id: old.id });
    const keyed = await Promise.all(names.map((key) => create(grown, { key })));
    expect(toShards(keyed).size).toBeGreaterThan(4);
    for (const key of names) expect(await grown.find({ tenant: TENANT, key })).toMatchObject({ key });
  });

  test('new shards are unavailable to a client that does not know them, even to one that is connected', async () => {
    await using server = await startRedis();
    await using before = createRedisStore({ url: server.url });
    const task = await create(before);
    await using grown = createRedisStore({ url: server.url, shards: [1, 4] });
    // It asks the old shard first, which then knows about the new one.
    await create(grown, { conversation: 'c' });
    const refused = /^STORE_SETUP: .*shards: \[1, 4\]/;
    expect(await failure(create(before, { conversation: 'c' }))).toMatch(refused);
    expect(await failure(before.cancel(task))).toMatch(refused);
    expect(await failure(before.get(task))).toMatch(refused);
    await using late = createRedisStore({ url: server.url });
    expect(await failure(create(late))).toMatch(refused);
    await using other = createRedisStore({ url: server.url, shards: [1, 8] });
    expect(await failure(create(other))).toMatch(refused);
    expect(() => createRedisStore({ url: server.url, shards: [4, 1] })).toThrow(/shards/);
  });

  test('take a conversation that is forgotten between the question and the creation for a new one', async () => {
    await using server = await startRedis();
    const before = createRedisStore({ url: server.url, conversationRetentionMs: 60_000 });
    await say(before, 'old', 'one');
    await before[Symbol.asyncDispose]();
    let asked = 0;
    // It times out on the second request.
    const shift = (): number => (++asked > 1 ? 120_000 : 0);
    await using grown = openRedisStore({ url: server.url, shards: [1, 16], conversationRetentionMs: 60_000 }, shift);
    expect(await failure(create(grown, { conversation: 'old' }))).toMatch(
      /^STORE_BUSY: .*was removed during the request/,
    );
    expect(getShard((await create(grown, { conversation: 'old' })).id)).toBeGreaterThan(0);
  });

  test('grow on a Cluster, under workers that take from all of them', async () => {
    await using cluster = await startRedisCluster();
    const location = { url: cluster.urls, cluster: true };
    const before = createRedisStore({ ...location, shards: 2 });
    const old = await Promise.all(names.map((key) => create(before, { key })));
    await before[Symbol.asyncDispose]();
    await using grown = createRedisStore({ ...location, shards: [2, 8] });
    const fresh = await Promise.all(names.map(() => create(grown)));
    const request = { session: 's', worker: 'w', leaseMs: 60_000, takeNumber: 1, agents: ['a'], limit: 100 };
    const taken: string[] = [];
    for (let domain = 0; domain < grown.domains; domain++) {
      const answer = await grown.take({ ...request, domain, claim: `claim-${domain}` });
      if (answer.result === 'taken') taken.push(...answer.tasks.map(({ task }) => task.id));
    }
    expect(taken.toSorted()).toEqual([...old, ...fresh].map(({ id }) => id).toSorted());
  });
});
