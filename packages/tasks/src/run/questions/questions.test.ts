import { createAgent, type Message, type Tool } from '@whoa/core';
import { callTools, reply, type Step } from '@whoa/core/model';
import { flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { answerCall } from '../../../../../test/tasks/answer-call.ts';
import { idOf, scripted, setUp, TASK, tool } from '../../../../../test/tasks/runner-set-up.ts';
import type { TaskStore } from '../../store.ts';
import type { TaskRef } from '../../task.ts';
import { createRunner } from '../store-runner.ts';
import { createTaskApprovals, type TaskApprovalsOptions } from './approvals.ts';

const describe = (history: readonly Message[]): Step =>
  reply(
    history
      .filter(({ role }) => role !== 'assistant')
      .map(({ role, content }) => `${role}: ${typeof content === 'string' ? content : ''}`)
      .join('; '),
  );

interface Setting {
  readonly times?: Omit<TaskApprovalsOptions, 'judge'>;
  readonly calls?: readonly string[];
  readonly preview?: Tool['preview'];
}

/** A worker whose agent wants to pay, and more workers like it on the same store. */
function openBank({ times = { parkAfterMs: 0 }, calls = ['c1'], preview }: Setting = {}) {
  const paid: string[] = [];
  const pay = tool('pay', (_input, { callId }) => `paid ${paid.push(callId)}`, {
    effects: 'write',
    ...(preview && { preview }),
  });
  const planner = scripted(() => callTools(calls.map((id) => ({ id, tool: 'pay', input: {} }))), describe);
  const approvals = createTaskApprovals(times);
  const made = setUp({ planner, tools: [pay], approvals });
  const { world, runnerOptions } = made;
  const start = (more: { tools?: readonly Tool[]; version?: string } = {}) => {
    const { approve } = approvals;
    const agent = createAgent({ name: 'assistant', planner, tools: [pay], world, approve, ...more });
    return createRunner({ ...runnerOptions, agents: { assistant: agent } });
  };
  return { ...made, paid, start };
}

async function create(store: TaskStore): Promise<TaskRef> {
  await store.create(TASK);
  return { tenant: 'acme', id: await idOf(store) };
}

const stored = async (store: TaskStore, ref: TaskRef) => (await store.get(ref))!;

test('a task that only waits for an answer leaves its worker, and the answer brings it back without a word to the model', async () => {
  const { store, runner, start, paid, events } = openBank();
  const ref = await create(store);
  await runner.serve({ concurrency: 1 });
  await flushMicrotasks();
  expect(runner.live).toBe(0);
  expect(events).toContainEqual(expect.objectContaining({ type: 'task-end', status: 'parked' }));
  expect(await stored(store, ref)).toMatchObject({ status: 'running', waiting: 1, attempts: 0 });
  await runner[Symbol.asyncDispose]();
  const [asked] = (await stored(store, ref)).questions!;
  await answerCall(store, ref, { callId: 'c1', decision: 'yes' });
  await using next = start();
  await next.serve({ concurrency: 1 });
  await flushMicrotasks();
  const { outcome, questions } = await stored(store, ref);
  expect(outcome).toMatchObject({ status: 'success', answer: 'user: hello; tool: paid 1' });
  expect(paid).toEqual(['c1']);
  expect(questions).toMatchObject([{ id: asked!.id, answer: { by: 'ann' }, closed: { why: 'answered' } }]);
  const journal = (await store.read(ref)).map(({ event }) => (event as { type: string }).type);
  expect(journal.filter((type) => type === 'approval-requested' || type === 'approval-question')).toHaveLength(2);
});

test('questions of a worker that is stopped are waited for by the next one, under the same ids', async () => {
  const { store, runner, start, paid } = openBank({ times: { parkAfterMs: Infinity }, calls: ['c1', 'c2'] });
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  const [asked] = (await stored(store, ref)).questions!;
  await runner.stop('now');
  expect(await stored(store, ref)).toMatchObject({ questions: [{ id: asked!.id }] });
  await using next = start();
  await next.serve();
  await flushMicrotasks();
  await answerCall(store, ref, { callId: 'c1', decision: 'yes' });
  await flushMicrotasks();
  await answerCall(store, ref, { callId: 'c2', decision: 'no', why: 'too dear' });
  await flushMicrotasks();
  expect((await stored(store, ref)).outcome?.answer).toBe(
    'user: hello; tool: paid 1; tool: Not started: denied: too dear',
  );
  expect(paid).toEqual(['c1']);
  const closed = (await stored(store, ref)).questions!.map((one) => `${one.callId} ${one.closed?.why}`);
  expect(closed.toSorted()).toEqual(['c1 answered', 'c2 answered']);
});

test('one slot, and a task that waits for a person: another task starts at once', async () => {
  const { store, runner } = openBank({ times: {} });
  const ref = await create(store);
  await runner.serve({ concurrency: 1 });
  await flushMicrotasks();
  expect(await stored(store, ref)).toMatchObject({ waiting: 1 });
  const second = await store.create({ ...TASK, input: 'second' });
  await flushMicrotasks();
  const { id } = (second as { task: { id: string } }).task;
  expect(await store.get({ tenant: 'acme', id })).toMatchObject({ waiting: 1 });
  await runner[Symbol.asyncDispose]();
});

test('an always survives its worker', async () => {
  const { store, runner, start, paid } = openBank({ calls: ['c1', 'c2'] });
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  await answerCall(store, ref, { callId: 'c1', decision: 'always' });
  await runner.stop('now');
  await using next = start();
  await next.serve();
  await flushMicrotasks();
  expect((await stored(store, ref)).questions).toHaveLength(1);
  expect(paid.toSorted()).toEqual(['c1', 'c2']);
});

test('what would run has changed since it was shown: it is asked again, and only the new answer counts', async () => {
  let sandbox = 'one';
  const { store, runner, paid } = openBank({ preview: () => ({ sandbox }) });
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  sandbox = 'two';
  await answerCall(store, ref, { callId: 'c1', decision: 'yes' });
  await flushMicrotasks();
  expect(paid).toEqual([]);
  const asked = (await stored(store, ref)).questions!;
  expect(asked.map((one) => one.closed?.why)).toEqual(['outdated', undefined]);
  await answerCall(store, ref, { callId: 'c1', decision: 'yes' });
  await flushMicrotasks();
  expect(paid).toEqual(['c1']);
  await runner[Symbol.asyncDispose]();
});

test.each([
  ['expires', 'no one answered in time', 'expired'],
  ['is withdrawn by a newer message', 'the user wrote a new message instead of answering', 'withdrawn'],
])('a question that %s ends its call, and the run continues', async (event, why, closed) => {
  const { store, runner, world, paid } = openBank({ times: { timeoutMs: 60_000, parkAfterMs: 0 } });
  await store.create({ ...TASK, conversation: 'chat' });
  const ref = { tenant: 'acme', id: await idOf(store) };
  await runner.serve();
  await flushMicrotasks();
  if (event === 'expires') await world.clock.advance(62_000);
  else await store.create({ ...TASK, conversation: 'chat', input: 'never mind' }, { policy: 'queue' });
  await flushMicrotasks();
  const { outcome, questions } = await stored(store, ref);
  expect(outcome?.answer).toBe(`user: hello; tool: Not started: denied: ${why}`);
  expect(questions).toMatchObject([{ closed: { why: closed } }]);
  expect(paid).toEqual([]);
  await runner[Symbol.asyncDispose]();
});

test('a parked task is cancelled: it settles, and an answer after that is too late', async () => {
  const { store, runner, paid } = openBank();
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  await store.cancel(ref);
  await flushMicrotasks();
  expect(await stored(store, ref)).toMatchObject({ status: 'cancelled', outcome: { reason: { kind: 'user' } } });
  expect(await answerCall(store, ref, { callId: 'c1', decision: 'yes' })).toMatchObject({
    result: 'too-late',
    why: 'cancelled',
  });
  expect(paid).toEqual([]);
  await runner[Symbol.asyncDispose]();
});

test('a call that is stopped withdraws its question, and the task does not wait for it', async () => {
  const { store, runner } = openBank({ times: { parkAfterMs: Infinity } });
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  await store.send(ref, { type: 'cancel-call', callId: 'c1' });
  await flushMicrotasks();
  expect(await stored(store, ref)).toMatchObject({
    status: 'success',
    questions: [{ closed: { why: 'withdrawn' } }],
  });
  await runner[Symbol.asyncDispose]();
});

test('a tool that is gone after a deploy is not started, and the model is told', async () => {
  const { store, runner, start, paid } = openBank();
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  await runner[Symbol.asyncDispose]();
  await answerCall(store, ref, { callId: 'c1', decision: 'yes' });
  await using next = start({ tools: [], version: 'two' });
  await next.serve();
  await flushMicrotasks();
  const { outcome } = await stored(store, ref);
  expect(outcome?.answer).toMatch(/there is no tool 'pay'.*You no longer have these tools: pay/s);
  expect(paid).toEqual([]);
});

test('an odd answer is a no', async () => {
  const { store, runner, paid } = openBank();
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  const [asked] = (await stored(store, ref)).questions!;
  await store.answer({ tenant: 'acme', id: asked!.id }, { value: true });
  await flushMicrotasks();
  expect((await stored(store, ref)).outcome?.answer).toContain('denied: the answer was not understood');
  expect(paid).toEqual([]);
  await runner[Symbol.asyncDispose]();
});
