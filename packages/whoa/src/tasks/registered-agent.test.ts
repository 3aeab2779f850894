import { setTimeout as wait } from 'node:timers/promises';
import { CancellationToken, createAgent, defineTool } from '@whoa/core';
import { createScriptedModel } from '@whoa/core/testing';
import { createMemoryStore, type TaskHead, type TaskStore } from '@whoa/tasks';
import { expect, onTestFinished, test } from 'vitest';
import type { ScriptedReply } from '../../../core/src/testing/scripted-model.ts';
import { LOCAL_TENANT } from './local-tasks.ts';
import { registeredAgent } from './registered-agent.ts';

const anything = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } } as const;

function setUp(replies: readonly ScriptedReply[], createWith?: (store: TaskStore) => TaskStore['create']) {
  const memory = createMemoryStore();
  onTestFinished(() => memory[Symbol.asyncDispose]());
  const store = createWith === undefined ? memory : withCreate(memory, createWith(memory));
  const started = Promise.withResolvers<void>();
  const slow = defineTool<unknown>({
    name: 'slow',
    description: 'Takes long.',
    inputSchema: anything,
    inputJsonSchema: {},
    effects: 'read',
    execute(_, { signal }) {
      started.resolve();
      return wait(60_000, 'late', { signal });
    },
  });
  const problems: unknown[] = [];
  const bare = createAgent({ name: 'assistant', model: createScriptedModel(replies), tools: [slow] });
  const registered = registeredAgent(bare, { store, onProblem: (error) => problems.push(error) });
  const task = async (): Promise<TaskHead> => (await memory.list({ tenant: LOCAL_TENANT })).tasks[0]!;
  return { store: memory, started: started.promise, problems, registered, task };
}

/** The store, but for how tasks are created. */
function withCreate(store: TaskStore, create: TaskStore['create']): TaskStore {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = name === 'create' ? create : Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

const SLOW: readonly ScriptedReply[] = [['Let me see. ', { call: 'slow' }], ['Well.']];

test('a run is a task with the same end and the same answer', async () => {
  const { registered, task, store } = setUp([['Fine.']]);
  const outcome = await registered.agent.run('How?').outcome;
  await registered.settled();
  expect(outcome.status).toBe('success');
  const { tenant, id } = await task();
  const record = (await store.get({ tenant, id }))!;
  expect(record).toMatchObject({ status: 'success', inputs: ['How?'], outcome: { answer: 'Fine.' } });
  const journal = await store.read({ tenant: LOCAL_TENANT, id: record.id });
  expect(journal.map(({ event }) => (event as { type: string }).type)).toContain('turn-end');
});

test('a cancel in the store stops the run, with its reason', async () => {
  const { registered, started, task, store } = setUp(SLOW);
  const run = registered.agent.run('How?');
  await started;
  const ref = { tenant: LOCAL_TENANT, id: (await task()).id };
  const receipt = await store.cancel(ref, { kind: 'user', message: 'lunch' }, { mode: 'now' });
  expect(receipt.answer).toBe('accepted');
  expect(await run.outcome).toMatchObject({ status: 'cancelled', reason: { message: 'lunch' } });
  await registered.settled();
  expect(await task()).toMatchObject({
    status: 'cancelled',
    outcome: { reason: { message: 'lunch' }, stop: { clean: true } },
  });
  expect(await store.cancel(ref)).toMatchObject({ answer: 'too-late' });
});

test('a cancel at its own door ends the task too', async () => {
  const { registered, started, task } = setUp(SLOW);
  const token = new CancellationToken();
  const run = registered.agent.run('How?', { token });
  await started;
  token.cancel({ kind: 'user', message: 'enough' }, { mode: 'now' });
  token.cancel({ kind: 'user', message: 'again' }, { mode: 'kill' });
  expect(await run.outcome).toMatchObject({ status: 'cancelled', reason: { message: 'enough' } });
  await registered.settled();
  expect(await task()).toMatchObject({ status: 'cancelled', outcome: { reason: { message: 'enough' } } });
  token[Symbol.dispose]();
});

test('a run that was cancelled before it began is a task that was', async () => {
  const { registered, task } = setUp(SLOW);
  const token = new CancellationToken();
  token.cancel({ kind: 'user', message: 'never mind' });
  const outcome = await registered.agent.run('How?', { token }).outcome;
  await registered.settled();
  expect(outcome).toMatchObject({ status: 'cancelled', calls: [] });
  expect(await task()).toMatchObject({ status: 'cancelled' });
  token[Symbol.dispose]();
});

test('a cancel between the writing down and the claim reaches the run', async () => {
  const { registered, task } = setUp(SLOW, (store) => async (wanted, options) => {
    const receipt = await store.create(wanted, options);
    if (receipt.answer === 'created') {
      await store.cancel({ tenant: LOCAL_TENANT, id: receipt.task.id }, { message: 'early' });
    }
    return receipt;
  });
  const outcome = await registered.agent.run('How?').outcome;
  await registered.settled();
  expect(outcome).toMatchObject({ status: 'cancelled', reason: { message: 'early' } });
  expect(await task()).toMatchObject({ status: 'cancelled' });
});

test('a store that fails is told of and does not hold the run up', async () => {
  const broken = new Error('disk full');
  const { registered, problems } = setUp([['Fine.']], () => () => Promise.reject(broken));
  expect(await registered.agent.run('How?').outcome).toMatchObject({ status: 'success' });
  await registered.settled();
  expect(problems).toEqual([broken]);
});
