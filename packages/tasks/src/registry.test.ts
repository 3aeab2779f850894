import { createVirtualWorld } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { createTaskStore } from './factory.ts';
import { createCancellationRegistry } from './registry.ts';
import { createMemoryStore } from './stores/memory.ts';

function setUp() {
  const world = createVirtualWorld();
  const store = createMemoryStore({ world });
  return { world, store, registry: createCancellationRegistry({ store, tenant: 'acme' }) };
}

test('a registered task can be cancelled, and says so from then on', async () => {
  const { registry } = setUp();
  const { taskId } = await registry.register({ key: 'job', worker: 'w1' });
  expect(await registry.isCancelled(taskId)).toBe(false);
  expect(await registry.cancel(taskId, { message: 'user request' })).toMatchObject({ answer: 'accepted' });
  expect(await registry.isCancelled(taskId)).toBe(true);
  expect(await registry.get(taskId)).toMatchObject({ status: 'cancelling', reason: { message: 'user request' } });
});

test('a status set after a cancel cannot overwrite it', async () => {
  const { registry } = setUp();
  const { taskId, epoch } = await registry.register({ key: 'job', worker: 'w1' });
  await registry.cancel(taskId);
  expect(await registry.setStatus(taskId, 'success', epoch!)).toEqual({ answer: 'set', status: 'cancelled' });
  expect(await registry.setStatus(taskId, 'failed', epoch!)).toEqual({ answer: 'already', status: 'cancelled' });
});

test('a status is refused without the matching epoch', async () => {
  const { registry, world } = setUp();
  const first = await registry.register({ key: 'job', worker: 'w1', leaseMs: 1_000 });
  await world.clock.advance(1_000);
  const second = await registry.register({ key: 'job', worker: 'w2' });
  expect(second).toEqual({ taskId: first.taskId, epoch: 2 });
  expect(await registry.setStatus(first.taskId, 'success', 1)).toEqual({ answer: 'refused' });
  expect(await registry.get(first.taskId)).toMatchObject({ status: 'running', epoch: 2 });
});

test('registering what somebody holds gives no epoch', async () => {
  const { registry } = setUp();
  await registry.register({ key: 'job', worker: 'w1' });
  expect((await registry.register({ key: 'job', worker: 'w2' })).epoch).toBeUndefined();
});

test('two registries on two stores know nothing of each other', async () => {
  const [one, other] = [setUp(), setUp()];
  const { taskId } = await one.registry.register({ key: 'job', worker: 'w1' });
  expect(await other.registry.get(taskId)).toBeUndefined();
  expect(await other.registry.cancel(taskId)).toEqual({ answer: 'unknown' });
});

test('a registry of another tenant sees nothing', async () => {
  const { registry, store } = setUp();
  const { taskId } = await registry.register({ key: 'job', worker: 'w1' });
  const foreign = createCancellationRegistry({ store, tenant: 'other' });
  expect(await foreign.isCancelled(taskId)).toBe(false);
  expect(await foreign.cancel(taskId)).toEqual({ answer: 'unknown' });
});

test('the factory makes the store a configuration names', async () => {
  await using store = createTaskStore();
  expect(store.name).toBe('memory');
  await using redis = createTaskStore({ backend: 'redis', url: 'redis://127.0.0.1:1' });
  await using postgres = createTaskStore({ backend: 'postgres', url: 'postgres://127.0.0.1:1/none' });
  expect([redis.name, postgres.name]).toEqual(['redis', 'postgres']);
  expect(() => createTaskStore({ backend: 'etcd' as 'memory' })).toThrow(/none of memory/);
  expect(() => createTaskStore({ backend: 'constructor' as 'memory' })).toThrow(/none of memory/);
  const misspelt = { backend: 'sqlite', path: '/tmp/tasks.db' } as const;
  expect(() => createTaskStore(misspelt)).toThrow(/^path: the sqlite store has no such option; it has .*file/);
});
