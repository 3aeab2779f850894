import { createAgent } from '@whoa/core';
import { callTools, type Planner, reply } from '@whoa/core/model';
import { flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { claimFor, expireSessions } from '../../../../test/tasks/claimed.ts';
import { readFirstId, setUp, TASK, tool } from '../../../../test/tasks/runner-set-up.ts';
import { createRunner } from './store-runner.ts';

const PRICES = { m: { input: 1, output: 1 } };
const usage = { inputTokens: 300, outputTokens: 100, isComplete: true };

/** A planner that calls a tool `calls` times and then replies. */
function plannerOf(calls: number): Planner {
  return {
    model: 'm',
    next: (history) => {
      const done = history.filter(({ role }) => role === 'tool').length;
      const step = done < calls ? callTools([{ id: `c${done}`, tool: 'look', input: {} }]) : reply('done');
      return { ...step, message: { ...step.message, usage } };
    },
  };
}

function open(usd: number, planner: Planner = plannerOf(2)) {
  const { store, world, runnerOptions } = setUp();
  const tools = [tool('look', () => 'seen')];
  const agent = createAgent({ name: 'assistant', planner, tools, world, budgets: { usd, prices: PRICES } });
  return { store, world, runner: createRunner({ ...runnerOptions, agents: { assistant: agent } }) };
}

test('a task keeps what it has spent, and what is reserved is in the store before each request', async () => {
  const seen: unknown[] = [];
  const base = plannerOf(2);
  const planner: Planner = {
    model: 'm',
    next: async (history, context) => {
      seen.push((await store.list({ tenant: 'acme' })).tasks[0]!.activity?.spending);
      return base.next(history, context);
    },
  };
  const { store, runner } = open(1, planner);
  const receipt = await store.create(TASK);
  await runner.serve();
  await flushMicrotasks();
  const { outcome } = (await store.get({ tenant: 'acme', id: await readFirstId(store) }))!;
  expect(receipt.result).toBe('created');
  expect(outcome).toMatchObject({ status: 'success', spending: { spent: 1_200, estimated: 0, reserved: 0 } });
  expect(seen).toMatchObject([{ spent: 0 }, { spent: 400 }, { spent: 800 }]);
  for (const { reserved } of seen as { reserved: number }[]) expect(reserved).toBeGreaterThan(8_000);
  await runner[Symbol.asyncDispose]();
});

/** A task whose worker was lost with this activity. */
async function lost(usd: number, cancelled: boolean) {
  const { store, world, runner } = open(usd);
  const receipt = await store.create(TASK);
  const id = receipt.result === 'created' ? receipt.task.id : '';
  const claim = await claimFor(store, id, { worker: 'dead', leaseMs: 1_000 });
  const events = [{ type: 'run-start', input: { role: 'user', content: 'hello' } }];
  const spending = { spent: 500, estimated: 0, reserved: 9_000 };
  await store.append(claim, { after: 0, events, activity: { turns: 1, calls: 0, usage, spending } });
  const ref = { tenant: 'acme', id };
  if (cancelled) await store.cancel(ref);
  await expireSessions(store, world, 1_000);
  await runner.runExisting(ref);
  await runner[Symbol.asyncDispose]();
  return (await store.get(ref))!;
}

test('what a lost worker had reserved counts as spent, marked as estimated', async () => {
  const { outcome } = await lost(1, false);
  expect(outcome).toMatchObject({ status: 'success', spending: { spent: 10_700, estimated: 9_000, reserved: 0 } });
});

test('a resumed task keeps to its limit', async () => {
  const { outcome } = await lost(0.0096, false);
  const reason = {
    kind: 'budget',
    message: 'the run reached its limit: 0.0095 of 0.0096 USD spent, 0.009 of it estimated',
  };
  expect(outcome).toMatchObject({ status: 'cancelled', reason, spending: { spent: 9_500 } });
});

test('a task that is settled without running again counts the reservation too', async () => {
  const { outcome } = await lost(1, true);
  expect(outcome).toMatchObject({ status: 'cancelled', spending: { spent: 9_500, estimated: 9_000, reserved: 0 } });
});
