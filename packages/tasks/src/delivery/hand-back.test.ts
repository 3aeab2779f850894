// Outages of the store do not affect the tasks of a living worker, no matter how long they are, and a worker that stops
// does not hang.
import { sleep } from '@whoa/core';
import { createVirtualWorld } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { alterStore } from '../../../../test/tasks/altered-store.ts';
import { StoreBusyError } from '../errors.ts';
import { createMemoryStore } from '../ledger/memory.ts';
import { LIMITS } from '../ledger/rules/rules.ts';
import { createRunner } from '../run/store-runner.ts';
import type { TaskFunction } from '../run/work.ts';
import { tryClaim } from '../testing/case.ts';

const LEASE_MS = 3_000;
const TASK = { tenant: 'acme', agent: 'assistant', input: 'hello' };

type Fault = 'up' | 'down' | 'silent';

/** A worker whose tasks wait until they are stopped, and a store whose requests fail, or releases get no answer. */
function setUp({ work, onAsked }: { work?: TaskFunction; onAsked?: (name: string) => void } = {}) {
  const world = createVirtualWorld();
  const memory = createMemoryStore({ world });
  const state: { fault: Fault } = { fault: 'up' };
  const asked: string[] = [];
  const store = alterStore(memory, (name, call) => {
    asked.push(name);
    onAsked?.(name);
    if (state.fault === 'silent' && name === 'release') return new Promise(() => {});
    if (state.fault !== 'up') return Promise.reject(new StoreBusyError('the store is down'));
    return call();
  });
  const waits: TaskFunction = async ({ token }) => {
    await sleep(1e9, { clock: world.clock, token });
    return undefined;
  };
  const runner = createRunner({
    store,
    agents: { assistant: work ?? waits },
    world,
    leaseMs: LEASE_MS,
    pollIntervalMs: 500,
  });
  const sweepAll = async (): Promise<void> => {
    for (let i = 0; i < 6; i++) {
      await world.clock.advance(LEASE_MS / 3);
      while ((await memory.sweep()).hasMore);
    }
  };
  const heads = async () => (await memory.list({ tenant: 'acme' })).tasks;
  return { world, memory, state, asked, runner, sweepAll, heads };
}

test.for([true, false])('outages do not affect the tasks of a living worker (swept: %s)', async (isSwept) => {
  const { world, memory, state, runner, sweepAll, heads } = setUp();
  await runner.serve({ concurrency: 10 });
  for (let i = 0; i < 5; i++) await memory.create(TASK);
  await world.clock.advance(1_000);
  for (let outage = 0; outage < LIMITS.maxCrashes + 5; outage++) {
    state.fault = 'down';
    await world.clock.advance(5 * LEASE_MS);
    if (isSwept) await sweepAll();
    state.fault = 'up';
    await world.clock.advance(2 * LEASE_MS);
    expect(runner.live, `after outage ${outage}`).toBe(5);
    expect(new Set((await heads()).map((task) => `${task.status} ${task.attempts} ${task.crashes}`))).toEqual(
      new Set(['running 1 0']),
    );
  }
  await runner.stop('now');
});

test('tasks of a take whose answer was lost in an outage are handed back', async () => {
  const { world, memory, state, runner, heads } = setUp({
    onAsked: (name) => {
      if (name === 'take' && isTaking) state.fault = 'up';
    },
  });
  let isTaking = false;
  await memory.create(TASK);
  await runner.serve({ concurrency: 10 });
  await world.clock.advance(500);
  expect(runner.live).toBe(1);
  // The store carries the take out, and its answer does not come back before the session has ended.
  const { id } = ((await memory.create({ ...TASK, tenant: 'other' })) as { task: { id: string } }).task;
  isTaking = true;
  state.fault = 'down';
  await world.clock.advance(5 * LEASE_MS);
  isTaking = false;
  state.fault = 'up';
  await world.clock.advance(3 * LEASE_MS);
  expect(await memory.get({ tenant: 'other', id })).toMatchObject({ crashes: 0, attempts: 1, stage: 'held' });
  expect((await heads()).map(({ crashes }) => crashes)).toEqual([0]);
  await runner.stop('now');
});

test('a claim whose journal could not be read is handed back', async () => {
  const { world, memory, state, runner, heads } = setUp({
    onAsked: (name) => {
      state.fault = name === 'read' && isBroken ? 'down' : 'up';
    },
  });
  let isBroken = true;
  const { id } = ((await memory.create(TASK)) as { task: { id: string } }).task;
  const claimed = await tryClaim(memory, id);
  if (claimed.result !== 'claimed') throw new Error(claimed.result);
  await memory.append(claimed.claim, { after: 0, events: ['step'] });
  await memory.release(claimed.claim);
  const running = runner.runExisting({ tenant: 'acme', id });
  await expect(running).rejects.toThrow('the store is down');
  isBroken = false;
  await world.clock.advance(1_000);
  expect(await heads()).toMatchObject([{ status: 'init', stage: 'ready', attempts: 0, crashes: 0 }]);
  expect(await memory.sweep()).toMatchObject({ reclaimed: 0 });
  await runner.stop('now');
});

test('a caller does not wait until its lost task was handed back', async () => {
  const { world, state, runner } = setUp();
  const running = runner.run(TASK);
  running.catch(() => {});
  await world.clock.advance(100);
  state.fault = 'down';
  await world.clock.advance(2 * LEASE_MS);
  await expect(running).rejects.toThrow('(epoch 1)');
  expect(runner.live).toBe(0);
  state.fault = 'up';
  await runner.stop('now');
});

test.for(['down', 'silent'] as const)(
  'a worker that stops while the store is %s ends within a lease',
  async (fault) => {
    const { world, memory, state, asked, runner } = setUp();
    const { id } = ((await memory.create(TASK)) as { task: { id: string } }).task;
    await runner.serve({ concurrency: 1 });
    await world.clock.advance(500);
    state.fault = fault;
    await world.clock.advance(10 * LEASE_MS);
    expect(asked).toContain('release');
    asked.length = 0;
    let isStopped = false;
    const stopping = runner.stop('graceful').then(() => (isStopped = true));
    await world.clock.advance(LEASE_MS / 2);
    // A second stop does not extend it.
    const again = runner.stop('now');
    await world.clock.advance(LEASE_MS / 2 + 200);
    expect(isStopped).toBe(true);
    await Promise.all([stopping, again]);
    expect(fault === 'silent' || asked.includes('release'), 'it tried once more').toBe(true);
    expect(world.clock.pending).toBe(0);
    state.fault = 'up';
    expect((await tryClaim(memory, id)).result).toBe('held');
  },
);

test('a worker that stops before its task is lost returns it once the store is back', async () => {
  const { world, memory, state, runner, heads } = setUp();
  await memory.create(TASK);
  await runner.serve({ concurrency: 1 });
  await world.clock.advance(500);
  state.fault = 'down';
  const stopping = runner.stop('now');
  await world.clock.advance(LEASE_MS / 3);
  state.fault = 'up';
  await world.clock.advance(LEASE_MS / 3);
  await stopping;
  expect(await heads()).toMatchObject([{ status: 'init', stage: 'ready', attempts: 0, crashes: 0 }]);
});

test('steps that a function journals are progress', async () => {
  const { world, memory, runner, heads } = setUp({
    work: async ({ journal, signal }) => {
      await journal({ type: 'step' });
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined), { once: true }));
    },
  });
  await memory.create(TASK);
  await runner.serve({ concurrency: 1 });
  await world.clock.advance(500);
  expect(await heads()).toMatchObject([{ status: 'running', attempts: 0 }]);
  await runner.stop('now');
});
