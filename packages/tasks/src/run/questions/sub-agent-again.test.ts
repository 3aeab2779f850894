import { createAgent, createAgentTool, defineTool, type Tool } from '@whoa/core';
import { callTools, reply } from '@whoa/core/model';
import { flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { answerCall } from '../../../../../test/tasks/answer-call.ts';
import { claimFor, expireSessions } from '../../../../../test/tasks/claimed.ts';
import { readFirstId, scripted, setUp, TASK, tool } from '../../../../../test/tasks/runner-set-up.ts';
import type { TaskStore } from '../../store.ts';
import { createTaskApprovals } from './approvals.ts';

const about = { description: 'Asks', inputSchema: z.object({}) };
const when = defineTool({ ...about, name: 'when', answeredBy: 'user', effects: 'read', answerSchema: z.string() });

/** A worker whose agent has a sub-agent that calls one tool, and may be run again. */
function openOffice(inner: string) {
  const paid: string[] = [];
  const pay = tool('pay', (_, { callId }) => `paid ${paid.push(callId)}`, { effects: 'write' });
  const planner = scripted(
    () => callTools([{ id: 'in', tool: inner, input: {} }]),
    () => reply('done'),
  );
  const helper = createAgent({ name: 'helper', planner, tools: [pay, when as Tool] });
  const help = { ...createAgentTool(helper, { description: 'Helps' }), replay: 'safe' } as Tool;
  const calls = [{ id: 'out', tool: 'helper', input: { task: 'help' } }];
  const approvals = createTaskApprovals({ parkAfterMs: Infinity });
  const boss = scripted(
    () => callTools(calls),
    () => reply('done'),
  );
  return { ...setUp({ planner: boss, tools: [help], approvals }), paid };
}

async function create(store: TaskStore) {
  await store.create(TASK);
  return { tenant: 'acme', id: await readFirstId(store) };
}

test.each([
  ['pay', 'approve'],
  ['when', 'answer'],
])('a sub-agent that runs again after a crash asks again: %s', async (inner, kind) => {
  const lost = openOffice(inner);
  const before = await create(lost.store);
  await lost.runner.serve();
  await flushMicrotasks();
  await answerCall(lost.store, before, { callId: 'out', decision: 'yes' });
  await flushMicrotasks();
  const events = (await lost.store.read(before)).map(({ event }) => event as { type: string });
  await lost.runner[Symbol.asyncDispose]();
  const { store, world, runner, paid } = openOffice(inner);
  const ref = await create(store);
  const claim = await claimFor(store, ref.id, { worker: 'dead', leaseMs: 1_000 });
  const started = events.findIndex(({ type }) => type === 'call-intent') + 1;
  await store.append(claim, { after: 0, events: events.slice(0, started) });
  await expireSessions(store, world, 1_000);
  await runner.serve();
  await flushMicrotasks();
  expect(paid).toEqual([]);
  expect(await store.get(ref)).toMatchObject({ waiting: 1, questions: [{ callId: 'out/in', kind }] });
  await answerCall(store, ref, { callId: 'out/in', decision: 'yes' });
  await flushMicrotasks();
  expect([paid, (await store.get(ref))!.status]).toEqual([kind === 'approve' ? ['in'] : [], 'success']);
  await runner[Symbol.asyncDispose]();
});
