import { CancellationToken, createAgent, defineTool, sleep } from '@whoa/core';
import { systemClock } from '@whoa/core/embed';
import { createScriptedModel } from '@whoa/core/testing';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { type Around, alterStore } from '../../../../test/tasks/altered-store.ts';
import { createMemoryStore } from '../ledger/memory.ts';
import type { CreateReceipt, TaskStore } from '../store.ts';
import { createTaskApprovals } from './questions/approvals.ts';
import type { AdoptedTask } from './runner.ts';
import { createRunner } from './store-runner.ts';

const TENANT = 'acme';
const TASK = { tenant: TENANT, agent: 'assistant', input: 'How?' };
type Replies = Parameters<typeof createScriptedModel>[0];

function setUp(replies: Replies, around?: (memory: TaskStore) => Around) {
  const memory = createMemoryStore();
  const store = around === undefined ? memory : alterStore(memory, around(memory));
  const problems: unknown[] = [];
  const runner = createRunner({ store, agents: {}, hooks: { 'store-error': ({ error }) => problems.push(error) } });
  onTestFinished(async () => {
    await runner[Symbol.asyncDispose]();
    await memory[Symbol.asyncDispose]();
  });
  const started = Promise.withResolvers<string>();
  const slow = defineTool({
    name: 'slow',
    description: 'Takes long.',
    inputSchema: z.object({}).loose(),
    effects: 'read',
    async execute(_, { token, callId }) {
      started.resolve(callId);
      await sleep(60_000, { token, clock: systemClock });
      return 'late';
    },
  });
  const agent = createAgent({ name: 'assistant', model: createScriptedModel(replies), tools: [slow] });
  const adopt = (token?: CancellationToken): AdoptedTask =>
    runner.adopt(TASK, (options) => agent.run('How?', { ...options, token }), { ...(token && { token }) });
  const ref = async () => ({ tenant: TENANT, id: (await memory.list({ tenant: TENANT })).tasks[0]!.id });
  return { store: memory, runner, started: started.promise, problems, adopt, ref };
}

/** Does something between the creation of a task and its claim. */
const afterCreate = (act: (id: string) => unknown): Around => {
  return async (name, call) => {
    const result = await call();
    if (name === 'create') await act((result as Extract<CreateReceipt, { result: 'created' }>).task.id);
    return result;
  };
};

const SLOW: Replies = [['Let me see. ', { call: 'slow' }], ['Well.']];

test('an adopted run is a task with the same end, the same answer and its events', async () => {
  const { adopt, store, ref } = setUp([['Fine.']]);
  const { run, response } = adopt();
  expect((await run.outcome).status).toBe('success');
  expect(await response).toMatchObject({ status: 'success', answer: 'Fine.' });
  const record = await store.get(await ref());
  expect(record).toMatchObject({ status: 'success', inputs: ['How?'], outcome: { answer: 'Fine.' } });
  expect(record?.activity).toEqual({ turns: 1, calls: 0, usage: (await run.outcome).usage });
  expect(record?.outcome?.usage).toEqual(record?.activity?.usage);
  const types = (await store.read(await ref())).map(({ event }) => (event as { type: string }).type);
  expect(types).toEqual(expect.arrayContaining(['run-start', 'turn-start', 'turn-end']));
});

test('an adopted run asks a user through the store, and its task keeps its worker', async () => {
  const { store, ref } = setUp([]);
  const runner = createRunner({ store, agents: {}, approvals: createTaskApprovals({ parkAfterMs: 0 }) });
  onTestFinished(() => runner[Symbol.asyncDispose]());
  const ask = defineTool({
    name: 'ask',
    description: 'Asks.',
    inputSchema: z.object({}).loose(),
    answeredBy: 'user',
    answerSchema: z.string(),
  });
  const model = createScriptedModel([[{ call: 'ask' }], ['Thanks.']]);
  const agent = createAgent({ name: 'assistant', model, tools: [ask] });
  const { response } = runner.adopt(TASK, (options) => agent.run('How?', options));
  const asked = async () => (await store.questions({ tenant: TENANT })).questions[0]?.id;
  while ((await asked()) === undefined) await new Promise((resolve) => setImmediate(resolve));
  expect(runner.live).toBe(1);
  await store.answer({ tenant: TENANT, id: (await asked())! }, { value: { answer: 'so' } });
  expect(await response).toMatchObject({ status: 'success', answer: 'Thanks.' });
  expect(await store.get(await ref())).toMatchObject({ questions: [{ closed: { why: 'answered' } }] });
});

test('a cancel in the store stops an adopted run, with its reason', async () => {
  const { adopt, started, store, ref } = setUp(SLOW);
  const { run, response } = adopt();
  await started;
  const receipt = await store.cancel(await ref(), { kind: 'user', message: 'lunch' }, { mode: 'now' });
  expect(receipt.result).toBe('accepted');
  expect(await run.outcome).toMatchObject({ status: 'cancelled', reason: { message: 'lunch' } });
  expect(await response).toMatchObject({ status: 'cancelled', msg: 'lunch' });
  expect((await store.get(await ref()))?.outcome).toMatchObject({ stopReport: { isClean: true } });
  expect(await store.cancel(await ref())).toMatchObject({ result: 'too-late' });
});

test('commands in the store reach an adopted run: one call is stopped, and a message is read', async () => {
  const { adopt, started, store, ref } = setUp(SLOW);
  const { run, response } = adopt();
  const callId = await started;
  await store.send(await ref(), { type: 'steer', message: 'Hurry.' });
  await store.send(await ref(), { type: 'cancel-call', callId });
  expect(await run.outcome).toMatchObject({ status: 'success', text: 'Well.', calls: [{ state: 'interrupted' }] });
  expect(await response).toMatchObject({ status: 'success' });
  expect((await run.outcome).messages).toContainEqual({ role: 'user', content: 'Hurry.' });
});

test('a call of an adopted run is in the store before it starts', async () => {
  const { adopt, started, store, ref } = setUp(SLOW);
  const token = new CancellationToken();
  const { response } = adopt(token);
  const callId = await started;
  const events = (await store.read(await ref())).map(({ event }) => event);
  expect(events).toContainEqual(expect.objectContaining({ type: 'call-intent', callId }));
  token.cancel({}, { mode: 'now' });
  await response;
  token[Symbol.dispose]();
});

test("a cancel of the run's token ends the task too", async () => {
  const { adopt, started, store, ref } = setUp(SLOW);
  const token = new CancellationToken();
  const { run, response } = adopt(token);
  await started;
  token.cancel({ kind: 'user', message: 'enough' }, { mode: 'now' });
  token.cancel({ kind: 'user', message: 'again' }, { mode: 'kill' });
  expect(await run.outcome).toMatchObject({ status: 'cancelled', reason: { message: 'enough' } });
  expect(await response).toMatchObject({ status: 'cancelled' });
  expect((await store.get(await ref()))?.outcome).toMatchObject({ reason: { message: 'enough' } });
  token[Symbol.dispose]();
});

test('a run that was cancelled before it started is a cancelled task', async () => {
  const { adopt } = setUp(SLOW);
  const token = new CancellationToken();
  token.cancel({ kind: 'user', message: 'never mind' });
  const { run, response } = adopt(token);
  expect(await run.outcome).toMatchObject({ status: 'cancelled', calls: [] });
  expect(await response).toMatchObject({ status: 'cancelled' });
  token[Symbol.dispose]();
});

test('a cancel between the creation and the claim reaches the run, and no call starts', async () => {
  const { adopt } = setUp(SLOW, (store) =>
    afterCreate((id) => store.cancel({ tenant: TENANT, id }, { message: 'early' })),
  );
  const { run, response } = adopt();
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({ status: 'cancelled', reason: { message: 'early' } });
  expect(outcome.calls.filter(({ state }) => state !== 'not-started')).toEqual([]);
  expect(await response).toMatchObject({ status: 'cancelled' });
});

test('a run whose task another worker took is cancelled, and no call starts', async () => {
  const { adopt } = setUp(SLOW, (store) =>
    afterCreate((id) => store.claim(id, { session: 's', claim: 'c', worker: 'other', leaseMs: 60_000 })),
  );
  const { run, response } = adopt();
  const outcome = await run.outcome;
  expect(outcome).toMatchObject({ status: 'cancelled', reason: { kind: 'lease-lost' } });
  expect(outcome.calls.filter(({ state }) => state !== 'not-started')).toEqual([]);
  expect(await response).toMatchObject({ status: 'running' });
});

test('a store that fails is reported, and the run continues, with its calls', async () => {
  const broken = new Error('disk full');
  const { adopt, problems, started } = setUp(SLOW, () => (name, call) => {
    return name === 'create' ? Promise.reject(broken) : call();
  });
  const { run, response } = adopt();
  await expect(response).rejects.toBe(broken);
  run.cancelCall(await started);
  expect(await run.outcome).toMatchObject({ status: 'success', text: 'Well.' });
  expect(problems).toEqual([broken]);
});

test('a runner that stops cancels the runs it adopted and hands their tasks back', async () => {
  const { adopt, runner, started, store, ref } = setUp(SLOW);
  const { run, response } = adopt();
  await started;
  await runner.stop('now');
  expect(await run.outcome).toMatchObject({ status: 'cancelled', reason: { kind: 'shutdown' } });
  await expect(response).rejects.toMatchObject({ code: 'CANCELLED' });
  expect(await store.get(await ref())).toMatchObject({ status: 'init' });
});

test('a runner that was stopped cancels a run immediately', async () => {
  const { adopt, runner } = setUp(SLOW);
  await runner.stop();
  const { run, response } = adopt();
  await expect(response).rejects.toMatchObject({ code: 'CANCELLED' });
  expect(await run.outcome).toMatchObject({ status: 'cancelled', reason: { kind: 'shutdown' } });
});

test('an adopted run whose delivery is paused is cancelled with its task, and no worker starts it later', async () => {
  const { adopt, store, ref } = setUp(SLOW, (memory) => afterCreate(() => memory.pause({ tenant: TENANT }, true)));
  const { run, response } = adopt();
  const reason = { kind: 'paused', message: 'delivery is paused' };
  expect(await run.outcome).toMatchObject({ status: 'cancelled', reason });
  await response;
  expect(await store.get(await ref())).toMatchObject({ status: 'cancelled', outcome: { reason } });
});

test('a run that cannot start creates no task', async () => {
  const { runner, store } = setUp([]);
  const agent = createAgent({ name: 'assistant', model: createScriptedModel([]) });
  expect(() => runner.adopt(TASK, (options) => agent.run(7 as never, options))).toThrow(TypeError);
  expect((await store.list({ tenant: TENANT })).tasks).toEqual([]);
});
