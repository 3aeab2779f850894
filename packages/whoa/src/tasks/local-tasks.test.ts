import { createVirtualWorld } from '@whoa/core/testing';
import { createMemoryStore } from '@whoa/tasks';
import { expect, onTestFinished, test, vi } from 'vitest';
import { isLost, LOCAL_TENANT } from './local-tasks.ts';

const LEASE_MS = 10_000;

test('a task is lost when its store says that its worker is gone, whatever the clock here says', async () => {
  const world = createVirtualWorld();
  const store = createMemoryStore({ world });
  onTestFinished(() => store[Symbol.asyncDispose]());
  const created = await store.create({ tenant: LOCAL_TENANT, agent: 'assistant', input: 'How?' });
  if (created.answer !== 'created') throw new Error(created.answer);
  const { id } = created.task;
  await store.claim(id, 'worker', LEASE_MS);
  const task = async () => (await store.get({ tenant: LOCAL_TENANT, id }))!;
  const { leaseUntil } = await task();
  vi.setSystemTime(leaseUntil! - 1);
  onTestFinished(() => {
    vi.useRealTimers();
  });
  expect(await isLost(store, await task())).toBe(false);
  // Here it is an hour later, there it is not.
  vi.setSystemTime(leaseUntil! + 3_600_000);
  expect(await isLost(store, await task())).toBe(false);
  await world.clock.advance(LEASE_MS + 1);
  expect(await isLost(store, await task())).toBe(true);
});
