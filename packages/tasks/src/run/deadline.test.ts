import { createAgent, sleep } from '@whoa/core';
import { reply } from '@whoa/core/model';
import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { expect, onTestFinished, test } from 'vitest';
import { claimFor, expireSessions } from '../../../../test/tasks/claimed.ts';
import { createMemoryStore } from '../ledger/memory.ts';
import { createRunner } from './store-runner.ts';
import type { SelfManagedWork, TaskHandler } from './work.ts';

const LEASE_MS = 10_000;

function setUp(work?: TaskHandler) {
  const world = createVirtualWorld();
  const store = createMemoryStore({ world });
  let turns = 0;
  const agent = createAgent({
    name: 'assistant',
    planner: {
      async next(_history, { token, emit }) {
        turns++;
        emit({ type: 'text', text: 'Well, ' });
        await sleep(60_000, { clock: token.clock, token });
        return reply('Well, that was long');
      },
    },
    world,
  });
  const runner = createRunner({ store, agents: { assistant: work ?? agent }, world, leaseMs: LEASE_MS });
  const create = async (deadlineMs: number) => {
    const deadline = world.clock.now() + deadlineMs;
    const receipt = await store.create({ tenant: 'acme', agent: 'assistant', input: 'hello', deadline });
    if (receipt.result !== 'created') throw new Error(receipt.result);
    return { tenant: 'acme', id: receipt.task.id };
  };
  const serve = (): void => {
    const served = runner.serve();
    onTestFinished(async () => {
      await Promise.all([runner.stop('kill'), served]);
    });
  };
  return { world, store, serve, create, turns: () => turns };
}

test('a task that runs at its deadline is stopped immediately, and keeps its text', async () => {
  const { world, store, serve, create } = setUp();
  const ref = await create(5_000);
  serve();
  await flushMicrotasks();
  await world.clock.advance(4_999);
  expect((await store.get(ref))?.status).toBe('running');
  await world.clock.advance(1);
  await flushMicrotasks();
  expect(await store.get(ref)).toMatchObject({
    status: 'cancelled',
    outcome: { reason: { kind: 'deadline' }, answer: 'Well, ', stopReport: { isClean: true } },
  });
});

test('a task that is taken after its deadline is never begun', async () => {
  const { world, store, serve, create, turns } = setUp();
  const ref = await create(5_000);
  await world.clock.advance(6_000);
  serve();
  await flushMicrotasks();
  expect(await store.get(ref)).toMatchObject({ status: 'cancelled', outcome: { reason: { kind: 'deadline' } } });
  expect(turns()).toBe(0);
});

test('a task whose worker died is not started again after its deadline, and its text is kept', async () => {
  const { world, store, serve, create, turns } = setUp();
  const ref = await create(20_000);
  const by = await claimFor(store, ref.id, { worker: 'dead', leaseMs: LEASE_MS });
  const input = { role: 'user', content: [{ type: 'text', text: 'hello' }] };
  const events = [
    { type: 'run-start', agent: 'assistant', input },
    { type: 'text', text: 'Half a sent' },
  ];
  await store.append(by, { after: 0, events });
  await world.clock.advance(20_000);
  await expireSessions(store, world, LEASE_MS);
  serve();
  await flushMicrotasks();
  expect(await store.get(ref)).toMatchObject({
    status: 'cancelled',
    outcome: { reason: { kind: 'deadline' }, answer: 'Half a sent' },
  });
  expect(turns()).toBe(0);
});

test('a cancel before the deadline keeps its own reason, and a task that ended is left alone', async () => {
  const { world, store, serve, create } = setUp();
  const [first, second] = [await create(5_000), await create(70_000)];
  serve();
  await flushMicrotasks();
  await store.cancel(first, { kind: 'user', message: 'enough' });
  await flushMicrotasks();
  await world.clock.advance(70_000);
  await flushMicrotasks();
  expect((await store.get(first))?.outcome?.reason).toMatchObject({ kind: 'user', message: 'enough' });
  expect(await store.get(second)).toMatchObject({ status: 'success' });
});

test('self-managed work gets the deadline through its token, even before it starts', async () => {
  const heard: unknown[] = [];
  const work: SelfManagedWork = {
    async runTask({ token }) {
      heard.push(token.reason?.kind);
      await sleep(60_000, { clock: token.clock, token }).catch(() => {});
      return { status: 'cancelled', reason: token.reason!, isComplete: false };
    },
  };
  const { world, store, serve, create } = setUp(work);
  const refs = [await create(1_000), await create(90_000)];
  await world.clock.advance(2_000);
  serve();
  await flushMicrotasks();
  expect(heard).toEqual(['deadline', undefined]);
  expect((await store.get(refs[0]!))?.outcome?.reason?.kind).toBe('deadline');
});
