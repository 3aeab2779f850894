import { createVirtualWorld, letEverythingReact } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import type { TakeRequest } from '../delivery.ts';
import { createMemoryStore } from '../stores/memory.ts';
import { createRunner } from './store-runner.ts';

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
    await letEverythingReact();
    expect(runner.live).toBe(SLOTS);
    const before = gate;
    gate = Promise.withResolvers<void>();
    before.resolve();
  }
  await letEverythingReact();
  expect(runner.live).toBe(0);
  expect(limits.slice(0, 3)).toEqual([SLOTS, SLOTS, SLOTS]);
});
