import { createVirtualWorld } from '@whoa/core/testing';
import { createMemoryStore } from '@whoa/tasks';
import { expect, onTestFinished, test } from 'vitest';
import { isLost, LOCAL_TENANT, openStore, reclaimLost } from './local-tasks.ts';

const LEASE_MS = 10_000;

test('a task is lost when its store has taken it from a worker that is gone, and until another has it', async () => {
  const world = createVirtualWorld();
  const store = createMemoryStore({ world });
  onTestFinished(() => store[Symbol.asyncDispose]());
  const created = await store.create({ tenant: LOCAL_TENANT, agent: 'assistant', input: 'How?' });
  if (created.result !== 'created') throw new Error(created.result);
  const { id } = created.task;
  const lost = async (): Promise<boolean> => isLost((await store.get({ tenant: LOCAL_TENANT, id }))!);
  expect(await lost()).toBe(false);
  const claim = { worker: 'worker', leaseMs: LEASE_MS };
  await store.claim(id, { ...claim, session: 's1', claim: 'c1' });
  for (let i = 0; i < 3; i++) {
    await reclaimLost(store);
    expect(await lost()).toBe(false);
    await world.clock.advance(LEASE_MS / 3);
  }
  await world.clock.advance(1);
  await reclaimLost(store);
  expect(await lost()).toBe(true);
  await store.claim(id, { ...claim, session: 's2', claim: 'c2' });
  expect(await lost()).toBe(false);
});

test('a task that waits past its deadline ends when tasks are looked at, though no worker is there', async () => {
  const world = createVirtualWorld();
  const store = createMemoryStore({ world });
  onTestFinished(() => store[Symbol.asyncDispose]());
  const deadline = world.clock.now() + 1_000;
  const created = await store.create({ tenant: LOCAL_TENANT, agent: 'assistant', input: 'How?', deadline });
  const { id } = (created as { task: { id: string } }).task;
  const readStatus = async (): Promise<string | undefined> => (await store.get({ tenant: LOCAL_TENANT, id }))?.status;
  await reclaimLost(store);
  expect(await readStatus()).toBe('init');
  await world.clock.advance(1_000);
  await reclaimLost(store);
  expect(await readStatus()).toBe('cancelled');
});

test('an address in BUS_URL that is not one of a Redis is rejected, by the name of the variable', () => {
  const open = (bus: string) => openStore({ store: 'postgres://there/whoa' }, { BUS_URL: bus });
  expect(() => open('nonsense')).toThrow(/^BUS_URL: expected an address such as 'redis:/);
  expect(() => open('')).toThrow(/^BUS_URL: .*is its variable set/);
});
