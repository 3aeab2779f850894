import { createAgent, createAgentTool, defineTool, type Json, type Message, type Tool } from '@whoa/core';
import { callTools, reply, type Step } from '@whoa/core/model';
import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { alterStore } from '../../../../../test/tasks/altered-store.ts';
import { answerCall } from '../../../../../test/tasks/answer-call.ts';
import { deferred, readFirstId, scripted, setUp, TASK } from '../../../../../test/tasks/runner-set-up.ts';
import type { Batch } from '../../delivery/worker-store.ts';
import { PendingQuestions } from '../../follow/pending-questions.ts';
import { createMemoryStore } from '../../ledger/memory.ts';
import type { TaskStore } from '../../store.ts';
import type { TaskRef } from '../../task.ts';
import { createRunner } from '../store-runner.ts';
import { createTaskApprovals, type TaskApprovalsOptions } from './approvals.ts';

const about = { description: 'Asks', inputSchema: z.object({ question: z.string() }) };
const when = defineTool({ ...about, name: 'when', answeredBy: 'user', answerSchema: z.object({ day: z.number() }) });
const locate = defineTool({ ...about, name: 'locate', answeredBy: 'client', effects: 'read' });

const describe = (history: readonly Message[]): Step =>
  reply(
    history
      .filter(({ role }) => role !== 'assistant')
      .map(({ role, content }) => `${role}: ${content as string}`)
      .join('; '),
  );

const call = (tool: string, id = 'c1') => ({ id, tool, input: { question: 'Which day?' } });

/** Workers of an agent that asks, on one store. */
function openOffice(
  calls = [call('when')],
  times: TaskApprovalsOptions = { parkAfterMs: 0 },
  tools: Tool[] = [],
  memory?: TaskStore,
) {
  const planner = scripted(() => callTools(calls), describe);
  const approvals = createTaskApprovals(times);
  const made = setUp({ planner, tools: [when, locate, ...tools] as Tool[], approvals, ...(memory && { memory }) });
  const start = (change: { tools?: readonly Tool[]; version?: string } = {}) => {
    const { approve } = approvals;
    const agent = { name: 'assistant', planner, tools: [when, locate, ...tools] as Tool[], world: made.world, approve };
    return createRunner({ ...made.runnerOptions, agents: { assistant: createAgent({ ...agent, ...change }) } });
  };
  return { ...made, start };
}

async function create(store: TaskStore): Promise<TaskRef> {
  await store.create({ ...TASK, conversation: 'chat' });
  return { tenant: 'acme', id: await readFirstId(store) };
}

const stored = async (store: TaskStore, ref: TaskRef) => (await store.get(ref))!;

async function answer(store: TaskStore, ref: TaskRef, value: Json) {
  const open = (await stored(store, ref)).questions!.findLast((one) => one.closed === undefined);
  return store.answer({ tenant: 'acme', id: open!.id }, { value, by: 'ann' });
}

async function pending(store: TaskStore, ref: TaskRef) {
  const questions = new PendingQuestions();
  for (const entry of await store.read(ref)) questions.note(entry);
  return questions.list;
}

test.each([
  ['when', 'answer', { day: 3 }],
  ['locate', 'client', 'Oslo'],
])('a call of %s waits as a question of kind %s without its worker, and the answer is its result', async (...row) => {
  const [tool, kind, given] = row;
  const { store, runner, start } = openOffice([call(tool)]);
  const ref = await create(store);
  await runner.serve({ concurrency: 1 });
  await flushMicrotasks();
  expect(runner.live).toBe(0);
  const { waiting, questions } = await stored(store, ref);
  expect([waiting, questions]).toMatchObject([1, [{ kind, callId: 'c1' }]]);
  expect(await pending(store, ref)).toMatchObject([
    { id: questions![0]!.id, kind, question: { tool, title: `${tool}: Which day?` } },
  ]);
  await runner[Symbol.asyncDispose]();
  expect(await answer(store, ref, { answer: given })).toMatchObject({ result: 'accepted' });
  await using next = start();
  await next.serve();
  await flushMicrotasks();
  const ended = await stored(store, ref);
  const text = typeof given === 'string' ? given : JSON.stringify(given);
  expect(ended.outcome).toMatchObject({ status: 'success', answer: `user: hello; tool: ${text}` });
  expect(ended.questions).toMatchObject([{ id: questions![0]!.id, closed: { why: 'answered' } }]);
  expect(await pending(store, ref)).toEqual([]);
  const asked = (await store.read(ref)).filter(({ event }) => (event as { type: string }).type === 'question-asked');
  expect(asked).toHaveLength(1);
});

test('a question about a result stays known when its task leaves its worker, though the call was approved before', async () => {
  const pay = defineTool({ ...about, name: 'pay', effects: 'write', execute: () => 'paid' }) as Tool;
  const ship = defineTool({ ...about, name: 'ship', answeredBy: 'client', effects: 'write' }) as Tool;
  const { store, runner } = openOffice([call('ship'), call('pay', 'c2')], { parkAfterMs: 0 }, [pay, ship]);
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  await answerCall(store, ref, { callId: 'c1', decision: 'yes' });
  await flushMicrotasks();
  expect(runner.live).toBe(0);
  await store.send(ref, { type: 'cancel-call', callId: 'c2' });
  await flushMicrotasks();
  const { questions } = await stored(store, ref);
  const open = questions!.filter(({ closed }) => closed === undefined).map(({ id, kind }) => ({ id, kind }));
  expect(open).toMatchObject([{ kind: 'client' }]);
  expect(await pending(store, ref)).toMatchObject(open);
  await runner[Symbol.asyncDispose]();
});

/** Lets another worker, whose agent has another tool of this name, continue a task that asks. */
async function changeTool(name: 'when' | 'locate', tools: (ran: string[]) => readonly Tool[]) {
  const ran: string[] = [];
  const { store, runner, start } = openOffice([call(name)], { parkAfterMs: Infinity });
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  await runner.stop('now');
  const next = start({ tools: tools(ran) });
  await next.serve();
  await flushMicrotasks();
  const { outcome, questions } = await stored(store, ref);
  await next[Symbol.asyncDispose]();
  const asked = questions!.map(({ kind, closed }) => `${kind} ${closed?.why ?? 'open'}`).toSorted();
  return { ran, text: outcome?.answer, asked };
}

const withCode = (name: string, ran: string[], replay: Tool['replay'] = 'never'): Tool =>
  defineTool({ ...about, name, effects: 'write', replay, execute: () => `ran ${ran.push(name)}` }) as Tool;

test('a tool that got code while its question waited does not run without approval', async () => {
  const { ran, asked } = await changeTool('when', (wanted) => [withCode('when', wanted)]);
  expect([ran, asked]).toEqual([[], ['answer withdrawn', 'approve open']]);
});

test.each([
  ['has code now', (ran: string[]) => [withCode('locate', ran)]],
  ['has code now that is safe to repeat', (ran: string[]) => [withCode('locate', ran, 'safe')]],
  ['is gone', () => []],
])('a call that may have run in a client is unknown if its tool %s', async (_, tools) => {
  const { ran, text, asked } = await changeTool('locate', tools);
  expect([ran, asked]).toEqual([[], ['client withdrawn']]);
  expect(text).toContain('tool: Outcome unknown');
});

test('a question carries the JSON Schema of its answer', async () => {
  const { store, runner } = openOffice();
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  expect(await pending(store, ref)).toMatchObject([{ schema: { properties: { day: { type: 'number' } } } }]);
  await runner[Symbol.asyncDispose]();
});

test.each([
  ['when', { answer: { day: 'soon' } }, /Not started: the answer does not match its schema: day: /],
  ['when', { error: 'ask my boss' }, /Not started: ask my boss/],
  ['when', { decision: 'yes' }, /Not started: the answer was not understood/],
  ['locate', { error: 'no GPS' }, /tool: no GPS/],
  ['locate', null, /tool: the answer was not understood/],
] as const)('a call of %s that is answered with %j ends, and the run continues', async (tool, value, text) => {
  const { store, runner } = openOffice([call(tool)]);
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  await answer(store, ref, value);
  await flushMicrotasks();
  const { outcome, questions } = await stored(store, ref);
  expect(outcome?.answer).toMatch(text);
  expect(questions).toMatchObject([{ closed: { why: 'answered' } }]);
  await runner[Symbol.asyncDispose]();
});

test.each([
  ['expired', 'when', 'Not started: no one answered in time'],
  ['withdrawn', 'when', 'Not started: the user wrote a new message instead of answering'],
  ['expired', 'locate', 'Outcome unknown: no one answered in time. It may have taken effect.'],
  ['withdrawn', 'locate', 'Outcome unknown: the user wrote a new message instead of answering. It may'],
])('a question that is %s ends its call of %s truthfully', async (why, tool, text) => {
  const { store, runner, world } = openOffice([call(tool)], { timeoutMs: 60_000, parkAfterMs: 0 });
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  if (why === 'expired') await world.clock.advance(62_000);
  else await store.create({ ...TASK, conversation: 'chat', input: 'never mind' }, { policy: 'queue' });
  await flushMicrotasks();
  const { outcome, questions } = await stored(store, ref);
  expect(outcome?.answer).toContain(`tool: ${text}`);
  expect(questions).toMatchObject([{ closed: { why } }]);
  await runner[Symbol.asyncDispose]();
});

test.each([
  ['when', 'parked', 0, 'not-started'],
  ['locate', 'parked', 0, 'unknown'],
  ['when', 'held', Infinity, 'not-started'],
  ['locate', 'held', Infinity, 'unknown'],
])('a call of %s in a %s task that is cancelled is settled truthfully', async (tool, _stage, parkAfterMs, state) => {
  const { store, runner } = openOffice([call(tool)], { parkAfterMs });
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  await store.cancel(ref);
  await flushMicrotasks();
  const { status, outcome } = await stored(store, ref);
  expect([status, outcome?.stopReport]).toMatchObject(['cancelled', { calls: [{ callId: 'c1', state }] }]);
  expect(await answer(store, ref, { answer: 1 }).catch(() => 'closed')).toBe('closed');
  await runner[Symbol.asyncDispose]();
});

test.each(['when', 'locate'])('a call of %s keeps its question when its worker is stopped', async (tool) => {
  const { store, runner, start } = openOffice([call(tool)], { parkAfterMs: Infinity });
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  const [asked] = (await stored(store, ref)).questions!;
  await runner.stop('graceful');
  await using next = start();
  await next.serve();
  await flushMicrotasks();
  expect(await stored(store, ref)).toMatchObject({ waiting: 1, questions: [{ id: asked!.id }] });
  await answer(store, ref, { answer: { day: 7 } });
  await flushMicrotasks();
  expect((await stored(store, ref)).outcome?.answer).toBe('user: hello; tool: {"day":7}');
});

test('a client call keeps its question if that reaches the store while its worker stops', async () => {
  const memory = createMemoryStore({ world: createVirtualWorld() });
  const gate = deferred();
  let isAsked = false;
  const slow = alterStore(memory, async (name, callStore, args) => {
    const asks = name === 'append' && ((args[1] as Batch).asks?.length ?? 0) > 0;
    if (asks && !isAsked) {
      isAsked = true;
      await gate.promise;
    }
    return callStore();
  });
  const { runner, world, start } = openOffice([call('locate')], { parkAfterMs: Infinity }, [], slow);
  const ref = await create(memory);
  await runner.serve();
  await flushMicrotasks();
  expect(isAsked).toBe(true);
  const stopping = runner.stop('now');
  await world.clock.advance(5_000);
  gate.happen();
  await world.clock.advance(5_000);
  await stopping;
  await using next = start();
  await next.serve();
  await flushMicrotasks();
  await answer(memory, ref, { answer: 'Oslo' });
  await flushMicrotasks();
  const { outcome, questions } = await stored(memory, ref);
  expect(outcome?.answer).toBe('user: hello; tool: Oslo');
  expect(questions).toMatchObject([{ closed: { why: 'answered' } }]);
});

test('a client call that needs approval is approved once, even if its worker is lost between the two', async () => {
  const open = defineTool({ ...about, name: 'open', answeredBy: 'client' });
  const { store, runner, start } = openOffice([call('open')], { parkAfterMs: 0 }, [open as Tool]);
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  await answer(store, ref, { decision: 'yes' });
  await flushMicrotasks();
  expect((await stored(store, ref)).questions).toMatchObject([
    { kind: 'approve', closed: { why: 'answered' } },
    { kind: 'client' },
  ]);
  await runner[Symbol.asyncDispose]();
  await answer(store, ref, { answer: 'opened' });
  await using next = start();
  await next.serve();
  await flushMicrotasks();
  const { outcome, questions } = await stored(store, ref);
  expect(outcome?.answer).toBe('user: hello; tool: opened');
  expect(questions).toHaveLength(2);
});

test('a tool that is gone after a deploy is not started, and its question closes', async () => {
  const { store, runner, start } = openOffice();
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  await runner[Symbol.asyncDispose]();
  await answer(store, ref, { answer: { day: 1 } });
  await using next = start({ tools: [], version: 'two' });
  await next.serve();
  await flushMicrotasks();
  const { outcome, questions } = await stored(store, ref);
  expect(outcome?.answer).toMatch(/there is no tool 'when'/);
  expect(questions).toMatchObject([{ closed: { why: 'outdated' } }]);
});

test('a sub-agent asks a person too, and its question closes as answered', async () => {
  const helper = createAgent({
    name: 'helper',
    planner: scripted(() => callTools([call('when', 'in')]), describe),
    tools: [when as Tool],
  });
  const task = { id: 'out', tool: 'helper', input: { task: 'ask', question: '' } };
  const help = createAgentTool(helper, { description: 'Helps' }) as Tool;
  const { store, runner } = openOffice([task], { parkAfterMs: 0, decide: () => ({ decision: 'allow' }) }, [help]);
  const ref = await create(store);
  await runner.serve();
  await flushMicrotasks();
  expect(await pending(store, ref)).toMatchObject([{ question: { callId: 'out/in', tool: 'helper › when' } }]);
  await answer(store, ref, { answer: { day: 2 } });
  await flushMicrotasks();
  const { outcome, questions } = await stored(store, ref);
  expect(outcome?.answer).toContain('{"day":2}');
  expect(questions).toMatchObject([{ closed: { why: 'answered' } }]);
  expect(await pending(store, ref)).toEqual([]);
  await runner[Symbol.asyncDispose]();
});
