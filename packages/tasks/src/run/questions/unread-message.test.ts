import { createAgent, createAgentTool, type Message, type Tool } from '@whoa/core';
import { callTools, reply, type Step } from '@whoa/core/model';
import { flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { alterStore } from '../../../../../test/tasks/altered-store.ts';
import { answerCall } from '../../../../../test/tasks/answer-call.ts';
import { readFirstId, scripted, setUp, TASK, tool } from '../../../../../test/tasks/runner-set-up.ts';
import type { Batch } from '../../delivery/worker-store.ts';
import type { TaskStore } from '../../store.ts';
import { createRunner } from '../store-runner.ts';
import { createTaskApprovals } from './approvals.ts';

const describe = (history: readonly Message[]): Step =>
  reply(
    history.flatMap(({ role, content }) => (role === 'assistant' ? [] : [`${role}: ${content as string}`])).join('; '),
  );

const TALK = { ...TASK, conversation: 'c' };

/** A chat whose user writes before the first question reaches the store. */
function openChat(tools: (pay: Tool) => readonly Tool[], planner = scripted(callPay, describe)) {
  const paid: string[] = [];
  const pay = tool('pay', (_, { callId }) => `paid ${paid.push(callId)}`, { effects: 'write' });
  const approvals = createTaskApprovals({ parkAfterMs: 0 });
  const made = setUp({ planner, tools: tools(pay), approvals });
  const written: string[] = [];
  const messages: unknown[] = [];
  const store = alterStore(made.store, async (name, call, args) => {
    const asks = name === 'append' ? ((args?.[1] as Batch | undefined)?.asks ?? []) : [];
    if (asks.length > 0) written.push(asks[0]!.callId);
    if (asks.length > 0 && messages.length > 0)
      await made.store.create({ ...TALK, input: messages.shift() as string }, { policy: 'steer' });
    return call();
  });
  return { ...made, paid, written, messages, runner: createRunner({ ...made.runnerOptions, store }) };
}

const callPay = (): Step => callTools([{ id: 'c1', tool: 'pay', input: {} }]);

async function create(store: TaskStore) {
  await store.create(TALK);
  return { tenant: 'acme', id: await readFirstId(store) };
}

test('a message that was stored before a question comes first, and no one is asked', async () => {
  const { store, runner, paid, messages } = openChat((pay) => [pay]);
  messages.push('STOP, do not pay');
  const ref = await create(store);
  await runner.serve({ concurrency: 1 });
  await flushMicrotasks();
  const { outcome, questions } = (await store.get(ref))!;
  expect(outcome?.answer).toBe(
    'user: hello; tool: Not started: denied: the user wrote a message first; user: STOP, do not pay',
  );
  expect([paid, questions]).toEqual([[], undefined]);
  await runner[Symbol.asyncDispose]();
});

test('a question that has changed is not asked again before the message is read, and its yes counts no more', async () => {
  let sandbox = 'one';
  const { store, runner, paid, messages, written } = openChat((pay) => [{ ...pay, preview: () => ({ sandbox }) }]);
  const ref = await create(store);
  await runner.serve({ concurrency: 1 });
  await flushMicrotasks();
  expect(await store.get(ref)).toMatchObject({ stage: 'parked', waiting: 1 });
  messages.push('wait');
  sandbox = 'two';
  await answerCall(store, ref, { callId: 'c1', decision: 'yes' });
  await flushMicrotasks();
  const { status, questions } = (await store.get(ref))!;
  expect([status, paid, written.length]).toEqual(['success', [], 2]);
  expect(questions).toMatchObject([{ closed: { why: 'outdated' } }]);
  await runner[Symbol.asyncDispose]();
});

test('a sub-agent that may not ask ends with what it has, and its parent reads the message next', async () => {
  const { store, runner, paid, messages, written } = openChat(
    (pay) => {
      const note = tool('note', () => 'noted', { effects: 'read' });
      const planner = scripted(
        () => callTools([{ id: 'n', tool: 'note', input: {} }]),
        () => callTools([{ id: 'in', tool: 'pay', input: {} }]),
        () => callTools([{ id: 'again', tool: 'pay', input: {} }]),
      );
      const helper = createAgent({ name: 'helper', planner, tools: [note, pay] });
      return [{ ...createAgentTool(helper, { description: 'Helps' }), effects: 'read' } as Tool];
    },
    scripted(() => callTools([{ id: 'out', tool: 'helper', input: { task: 'help' } }]), describe),
  );
  messages.push('STOP');
  const ref = await create(store);
  await runner.serve({ concurrency: 1 });
  await flushMicrotasks();
  const { status, outcome, questions } = (await store.get(ref))!;
  expect([status, written, paid, questions]).toEqual(['success', ['out/in'], [], undefined]);
  expect(outcome?.answer).toMatch(/^user: hello; tool: .*Interrupted.*; user: STOP$/su);
  const ends = (await store.read(ref)).map(
    ({ event }) => event as { type: string; result?: { callId: string; state: string } },
  );
  expect(ends.find(({ type }) => type === 'call-end')?.result).toMatchObject({ callId: 'out', state: 'interrupted' });
  await runner[Symbol.asyncDispose]();
});

test('a message that the run cannot read keeps no one from asking', async () => {
  const { store, runner, paid, messages } = openChat(
    (pay) => [pay],
    scripted(callPay, () => callTools([{ id: 'c2', tool: 'pay', input: {} }]), describe),
  );
  messages.push({ nonsense: true });
  const ref = await create(store);
  await runner.serve({ concurrency: 1 });
  await flushMicrotasks();
  expect(await store.get(ref)).toMatchObject({ stage: 'parked', waiting: 1, questions: [{ callId: 'c2' }] });
  await answerCall(store, ref, { callId: 'c2', decision: 'yes' });
  await flushMicrotasks();
  expect([paid, (await store.get(ref))!.status]).toEqual([['c2'], 'success']);
  await runner[Symbol.asyncDispose]();
});
