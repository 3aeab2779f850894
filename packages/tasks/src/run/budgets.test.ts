import { createAgent, type Tool } from '@whoa/core';
import { callTools, type Planner } from '@whoa/core/model';
import { flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { answerCall } from '../../../../test/tasks/answer-call.ts';
import { readFirstId, setUp, TASK, tool } from '../../../../test/tasks/runner-set-up.ts';
import { createTaskApprovals } from './questions/approvals.ts';
import { createRunner } from './store-runner.ts';

test.each([
  [{ maxTurns: 3 }, 3],
  [{ maxCalls: 2 }, 2],
  [{ maxModelTokens: 25 }, 1],
])('a task that leaves its worker in each turn keeps to %j', async (budgets, expected) => {
  let turns = 0;
  const planner: Planner = {
    next: () => {
      const { message, calls } = callTools([{ id: `c${++turns}`, tool: 'pay', input: {} }]);
      return { message: { ...message, usage: { inputTokens: 10, outputTokens: 5, isComplete: true } }, calls };
    },
  };
  const paid: string[] = [];
  const pay: Tool = tool('pay', (_, { callId }) => `paid ${paid.push(callId)}`, { effects: 'write' });
  const approvals = createTaskApprovals({ parkAfterMs: 0 });
  const { store, world, runnerOptions } = setUp({ approvals });
  const agent = createAgent({ name: 'assistant', planner, tools: [pay], world, budgets, approve: approvals.approve });
  await using runner = createRunner({ ...runnerOptions, agents: { assistant: agent } });
  await store.create(TASK);
  const ref = { tenant: 'acme', id: await readFirstId(store) };
  await runner.serve();
  await flushMicrotasks();
  for (let asked = 1; asked <= 5; asked++) {
    await answerCall(store, ref, { callId: `c${asked}`, decision: 'yes' });
    await flushMicrotasks();
  }
  expect((await store.get(ref))!.outcome).toMatchObject({ status: 'cancelled', reason: { kind: 'budget' } });
  expect(paid).toHaveLength(expected);
});
