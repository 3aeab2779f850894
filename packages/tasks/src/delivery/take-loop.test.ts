import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { createMemoryStore } from '../ledger/memory.ts';
import { createRunner } from '../run/store-runner.ts';
import type { TakeRequest } from './worker-store.ts';

const SLOTS = 8;

test('tasks that end together make room for one take', async () => {
  const world = createVirtualWorld();
  await using store = createMemoryStore({ world });
  const limits: number[] = [];
  const take = store.take.bind(store);
  Object.assign(store, {
    take: (request: TakeRequest) => {
      limits.push(request.limit);
      return take(request);
    },
  });
  let gate = Promise.withResolvers<void>();
  await using runner = createRunner({ store, world, agents: { wait: () => gate.promise.then(() => 'done') } });
  for (let i = 0; i < 3 * SLOTS; i++) await store.create({ tenant: 'acme', agent: 'wait', input: i });
  await runner.serve({ concurrency: SLOTS });
  for (let round = 0; round < 3; round++) {
    await flushMicrotasks();
    expect(runner.live).toBe(SLOTS);
    const before = gate;
    gate = Promise.withResolvers<void>();
    before.resolve();
  }
  await flushMicrotasks();
  expect(runner.live).toBe(0);
  expect(limits.slice(0, 3)).toEqual([SLOTS, SLOTS, SLOTS]);
});

test('a worker that reclaims a dead worker’s task takes it immediately, though the store notifies the dead one', async () => {
  const world = createVirtualWorld();
  await using store = createMemoryStore({ world });
  await store.create({ tenant: 'acme', agent: 'wait', input: 'x' });
  const dead = {
    session: 's',
    worker: 'dead',
    agents: ['wait'],
    leaseMs: 15_000,
    takeNumber: 1,
    claim: 'c',
  };
  const gate = Promise.withResolvers<string>();
  // It has one task, waits for another, and dies.
  expect(await store.take({ ...dead, limit: 2 })).toMatchObject({ tasks: [{ claim: { session: 's' } }] });
  await using runner = createRunner({ store, world, agents: { wait: () => gate.promise } });
  await runner.serve({ concurrency: 1 });
  await world.clock.advance(14_999);
  expect(runner.live).toBe(0);
  await world.clock.advance(1);
  await flushMicrotasks();
  expect(runner.live).toBe(1);
  gate.resolve('done');
});
