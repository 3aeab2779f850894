import { createAgent, type Json, type Message, type Tool } from '@whoa/core';
import { callTools, reply, type Step } from '@whoa/core/model';
import { flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { alterStore } from '../../../../../test/tasks/altered-store.ts';
import { answerCall } from '../../../../../test/tasks/answer-call.ts';
import { claimFor, expireSessions } from '../../../../../test/tasks/claimed.ts';
import { readFirstId, scripted, setUp, TASK, tool } from '../../../../../test/tasks/runner-set-up.ts';
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
  readonly replay?: Tool['replay'];
  readonly effects?: Tool['effects'];
  readonly input?: Json;
  /** Happens before the worker writes. */
  readonly beforeAppend?: (store: TaskStore) => Promise<unknown>;
}

/** A worker whose agent wants to pay, and more workers like it on the same store. */
function openBank({ times = { parkAfterMs: 0 }, calls = ['c1'], preview, replay = 'never', ...more }: Setting = {}) {
  const paid: string[] = [];
  const { effects = 'write', input = {}, beforeAppend } = more;
  const pay = tool('pay', (_input, { callId }) => `paid ${paid.push(callId)}`, {
    effects,
    replay,
    ...(preview && { preview }),
  });
  const planner = scripted(() => callTools(calls.map((id) => ({ id, tool: 'pay', input }))), describe);
  const approvals = createTaskApprovals(times);
  const made = setUp({ planner, tools: [pay], approvals });
  const { world } = made;
  const altered = alterStore(made.store, async (name, call) => {
    if (name === 'append') await beforeAppend?.(made.store);
    return call();
  });
  const runnerOptions = { ...made.runnerOptions, ...(beforeAppend && { store: altered }) };
  const start = (more: { tools?: readonly Tool[]; version?: string; concurrency?: number } = {}) => {
    const { approve } = approvals;
    const agent = createAgent({ name: 'assistant', planner, tools: [pay], world, approve, ...more });
    return createRunner({ ...runnerOptions, agents: { assistant: agent } });
  };
  return { ...made, runner: beforeAppend ? createRunner(runnerOptions) : made.runner, paid, start };
}

async function create(store: TaskStore): Promise<TaskRef> {
  await store.create(TASK);
  return { tenant: 'acme', id: await readFirstId(store) };
}

const stored = async (store: TaskStore, ref: TaskRef) => (await store.get(ref))!;

test('a task that only waits for an answer leaves its worker, and the answer brings it back without a word to the model', async () => {
  const { store, runner, start, paid, events } = openBank();
  const ref = await create(store);
  await runner.serve({ concurrency: 1 });
  await flushMicrotasks();
  expect(runner.live).toBe(0);
  expect(events).toContainEqual(expect.objectContaining({ type: 'task-left', status: 'parked' }));
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

test("the next worker waits for a stopped worker's questions, under the same ids", async () => {
  const { store, runner, start, paid } = openBank({ times: { parkAfterMs: Infinity }, calls: ['c1', 'c2'] });
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  const asked = (await stored(store, ref)).questions!.map(({ id }) => ({ id }));
  expect(asked).toHaveLength(2);
  await runner.stop('now');
  expect(await stored(store, ref)).toMatchObject({ questions: asked });
  await using next = start();
  await next.serve();
  await flushMicrotasks();
  await answerCall(store, ref, { callId: 'c2', decision: 'no', why: 'too dear' });
  await flushMicrotasks();
  await answerCall(store, ref, { callId: 'c1', decision: 'yes' });
  await flushMicrotasks();
  expect((await stored(store, ref)).outcome?.answer).toBe(
    'user: hello; tool: paid 1; tool: Not started: denied: too dear',
  );
  expect(paid).toEqual(['c1']);
  const closed = (await stored(store, ref)).questions!.map((one) => `${one.callId} ${one.closed?.why}`);
  expect(closed.toSorted()).toEqual(['c1 answered', 'c2 answered']);
});

test("questions about the calls of one turn are asked together, and an answered one starts without its siblings' answers", async () => {
  const { store, runner, paid } = openBank({ times: { parkAfterMs: Infinity }, calls: ['c1', 'c2', 'c3'] });
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  expect(await stored(store, ref)).toMatchObject({ waiting: 3 });
  await answerCall(store, ref, { callId: 'c2', decision: 'yes' });
  await flushMicrotasks();
  expect(paid).toEqual(['c2']);
  expect(await stored(store, ref)).toMatchObject({ waiting: 2 });
  await runner[Symbol.asyncDispose]();
});

test.each([
  ['always', ['c1', 'c2'], 'yes'],
  ['never', [], 'no'],
] as const)(
  "an '%s' answers the other questions that it covers, in the name of who gave it",
  async (decision, ...row) => {
    const [expected, covered] = row;
    const { store, runner, paid } = openBank({ calls: ['c1', 'c2'] });
    const ref = await create(store);
    await runner.serve();
    await flushMicrotasks();
    await answerCall(store, ref, { callId: 'c1', decision });
    await flushMicrotasks();
    const { questions, status } = await stored(store, ref);
    expect([status, paid]).toEqual(['success', expected]);
    expect(questions!.find(({ callId }) => callId === 'c2')).toMatchObject({
      answer: { by: 'ann', value: { decision: covered, why: 'an earlier answer covers it' } },
      closed: { why: 'answered' },
    });
    await runner[Symbol.asyncDispose]();
  },
);

test('a task is not parked while a call is about to ask', async () => {
  const preview = Promise.withResolvers<void>();
  let previews = 0;
  const { store, runner } = openBank({
    calls: ['c1', 'c2'],
    preview: async () => {
      if (++previews === 2) await preview.promise;
      return {};
    },
  });
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  expect([runner.live, (await stored(store, ref)).waiting]).toEqual([1, 1]);
  preview.resolve();
  await flushMicrotasks();
  expect([runner.live, (await stored(store, ref)).waiting]).toEqual([0, 2]);
  await runner[Symbol.asyncDispose]();
});

test('at most 32 questions are open, and the next is asked when one is answered', async () => {
  const calls = Array.from({ length: 34 }, (_, index) => `c${index}`);
  const { store, start } = openBank({ calls, times: { parkAfterMs: Infinity } });
  const ref = await create(store);
  const runner = start({ concurrency: 40 });
  await runner.serve();
  await flushMicrotasks();
  expect(await stored(store, ref)).toMatchObject({ waiting: 32 });
  await answerCall(store, ref, { callId: 'c0', decision: 'yes' });
  await flushMicrotasks();
  const { waiting, questions } = await stored(store, ref);
  expect([waiting, questions!.length]).toEqual([32, 33]);
  await store.cancel(ref);
  await flushMicrotasks();
  expect(await stored(store, ref)).toMatchObject({ status: 'cancelled' });
  await runner[Symbol.asyncDispose]();
});

test('a task that waits for a person leaves its only slot to another task immediately', async () => {
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
  const { questions } = await stored(store, ref);
  expect(questions!.map(({ answer }) => answer?.by)).toEqual(['ann', 'ann']);
  expect(paid.toSorted()).toEqual(['c1', 'c2']);
});

test('a call that has changed since its question is asked again, and only the new answer counts', async () => {
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
  const ref = { tenant: 'acme', id: await readFirstId(store) };
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
  const stopReport = { calls: [{ state: 'not-started' }], cleanupErrors: [], isClean: true };
  expect(await stored(store, ref)).toMatchObject({
    status: 'cancelled',
    outcome: { reason: { kind: 'user' }, stopReport },
  });
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

test('a call of a parked task is stopped: its question is withdrawn, and the task does not wait for it', async () => {
  const { store, runner, paid } = openBank();
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  expect(runner.live).toBe(0);
  await store.send(ref, { type: 'cancel-call', callId: 'c1' });
  await flushMicrotasks();
  expect(await stored(store, ref)).toMatchObject({ status: 'success', questions: [{ closed: { why: 'withdrawn' } }] });
  expect(paid).toEqual([]);
  await runner[Symbol.asyncDispose]();
});

test('an answer that comes while its call is stopped does not keep the task on its worker', async () => {
  let answering: Promise<unknown> | undefined;
  let ref: TaskRef | undefined;
  const { store, runner, world, paid } = openBank({
    calls: ['c1', 'c2'],
    times: { parkAfterMs: 10_000 },
    beforeAppend: async (plain) => {
      if (ref !== undefined) answering ??= answerCall(plain, ref, { callId: 'c1', decision: 'yes' });
      await answering;
    },
  });
  const created = await create(store);
  await runner.serve();
  await flushMicrotasks();
  ref = created;
  await store.send(ref, { type: 'cancel-call', callId: 'c1' });
  await flushMicrotasks();
  const { questions } = await stored(store, ref);
  expect(questions!.map((one) => `${one.callId} ${one.closed?.why}`).toSorted()).toEqual([
    'c1 outdated',
    'c2 undefined',
  ]);
  await world.clock.advance(11_000);
  expect([runner.live, paid]).toEqual([0, []]);
  await runner[Symbol.asyncDispose]();
});

test.each(['no', undefined] as const)(
  "a call that was asked about waits for the answer '%s', though a newer rule allows it",
  async (decision) => {
    let isAllowed = false;
    const decide = () => ({ decision: isAllowed ? ('allow' as const) : ('ask' as const) });
    const { store, runner, start, paid } = openBank({ times: { parkAfterMs: Infinity, decide } });
    const ref = await create(store);
    await runner.serve();
    await flushMicrotasks();
    await runner.stop('now');
    if (decision !== undefined) await answerCall(store, ref, { callId: 'c1', decision });
    isAllowed = true;
    await using next = start();
    await next.serve();
    await flushMicrotasks();
    expect(paid).toEqual([]);
    const { questions, waiting } = await stored(store, ref);
    expect([waiting ?? 0, questions![0]!.closed?.why]).toEqual(decision ? [0, 'answered'] : [1, undefined]);
  },
);

test('a rule can hold calls that only read', async () => {
  const { store, runner, paid } = openBank({ effects: 'read', times: { decide: () => ({ decision: 'ask' }) } });
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  expect([paid, (await stored(store, ref)).waiting]).toEqual([[], 1]);
  await runner[Symbol.asyncDispose]();
});

test('a call that is too large to be shown in full is not asked about, and does not start', async () => {
  const { store, runner, paid } = openBank({ input: { text: 'a'.repeat(2_000_000) } });
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  const { outcome, questions } = await stored(store, ref);
  expect(outcome?.answer).toBe(
    'user: hello; tool: Not started: it is too large to be shown in full, so no one can be asked',
  );
  expect([paid, questions]).toEqual([[], undefined]);
  await runner[Symbol.asyncDispose]();
});

test('a tool that is gone after a deploy is not started, and the model sees it', async () => {
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

/** Runs a task again whose worker was lost while its call ran: an approved one, or one that only read. */
async function replayWith(sandbox: string, effects: Tool['effects'] = 'write') {
  const before = openBank({ times: { parkAfterMs: Infinity }, preview: () => ({ sandbox: 'one' }), effects });
  const ref = await create(before.store);
  await before.runner.serve();
  await flushMicrotasks();
  if (effects === 'write') await answerCall(before.store, ref, { callId: 'c1', decision: 'yes' });
  await flushMicrotasks();
  const events = (await before.store.read(ref)).map(({ event }) => event);
  const intent = events.findIndex((event) => (event as { type: string }).type === 'call-intent');
  await before.runner[Symbol.asyncDispose]();
  const after = openBank({ preview: () => ({ sandbox }), replay: 'safe' });
  const again = await create(after.store);
  const claim = await claimFor(after.store, again.id, { worker: 'dead', leaseMs: 1_000 });
  await after.store.append(claim, { after: 0, events: events.slice(0, intent + 1) });
  await expireSessions(after.store, after.world, 1_000);
  await after.runner.serve();
  await flushMicrotasks();
  const { outcome, questions } = await stored(after.store, again);
  await after.runner[Symbol.asyncDispose]();
  return { paid: after.paid, answer: outcome?.answer, questions };
}

test('a safe call that only read needs approval before it runs again if a deploy lets it write', async () => {
  const { paid, questions } = await replayWith('one', 'read');
  expect([paid, questions]).toMatchObject([[], [{ callId: 'c1', kind: 'approve' }]]);
});

test('a safe call that was approved runs again after a crash if it has not changed since', async () => {
  expect(await replayWith('one')).toMatchObject({ paid: ['c1'], answer: 'user: hello; tool: paid 1' });
});

test('a safe call that has changed since its approval is unknown after a crash', async () => {
  const { paid, answer } = await replayWith('two');
  expect(paid).toEqual([]);
  expect(answer).toMatch(/tool: Outcome unknown: .*It is not known whether these took effect: pay \(c1\)/s);
});
