// BullMQ users have ioredis 5, which supports RESP2 only. The oldest version of the store's peer range must do all the
// same things.
import { createRedisStore } from '@whoa/tasks/internal';
import { createRedisStoreKind, runStoreContract, type StoreKind } from '@whoa/tasks/testing';
import { Cluster, Redis } from 'ioredis-v5';
import { expect, test, vi } from 'vitest';
import { borrowRedis } from '../servers/borrow.ts';
import { ask, startRedisCluster } from '../servers/redis.ts';

/** The contract is about results, not speed: a busy machine may take this long for one request. */
const BUSY_MS = 60_000;

vi.mock('ioredis', () => import('ioredis-v5'));

async function expectContract(kind: StoreKind): Promise<void> {
  const connect = vi.spyOn(Redis.prototype, 'connect');
  const { failed, passed, cases } = await runStoreContract(kind);
  expect(failed).toEqual([]);
  expect(passed).toBe(cases);
  expect(connect.mock.calls.length, 'the store uses ioredis 5').toBeGreaterThan(cases);
  connect.mockRestore();
}

test('a store keeps the whole contract on ioredis 5', async () => {
  await using redis = await borrowRedis();
  const setField = (...field: [key: string, field: string, value: string]) => ask(redis.port, 'HSET', ...field);
  await expectContract(createRedisStoreKind('ioredis 5', { url: redis.url, timeoutMs: BUSY_MS }, { setField }));
});

test('a store on a Cluster keeps the whole contract on ioredis 5', async () => {
  await using cluster = await startRedisCluster();
  const nodes = new Cluster([...cluster.urls]);
  const setField = (key: string, field: string, value: string) => nodes.hset(key, field, value);
  await expectContract(
    createRedisStoreKind('ioredis 5', { url: cluster.urls, cluster: true, timeoutMs: BUSY_MS }, { setField }),
  );
  nodes.disconnect();
});

test('a watcher whose connection was killed gets a resync, and later hints', async () => {
  await using redis = await borrowRedis();
  const task = { tenant: 'acme', agent: 'assistant', input: 'hello' };
  const [resynced, heard] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  {
    await using store = createRedisStore({ url: redis.url });
    await store.watch({ tenant: task.tenant }, ({ type }) =>
      type === 'resync' ? resynced.resolve() : heard.resolve(),
    );
    for (const id of await listeners(redis.port)) await ask(redis.port, 'CLIENT', 'KILL', 'ID', id);
    await resynced.promise;
    await store.create(task);
    await heard.promise;
    expect(await listeners(redis.port)).toHaveLength(1);
  }
  await expect.poll(() => ask(redis.port, 'CLIENT', 'LIST')).not.toContain('name=whoa');
});

/** The connections that are subscribed to something. */
async function listeners(port: number): Promise<string[]> {
  const clients = (await ask(port, 'CLIENT', 'LIST')).split('\n');
  return clients.filter((line) => / ssub=[1-9]/.test(line)).map((line) => /id=(\d+)/.exec(line)![1]!);
}
