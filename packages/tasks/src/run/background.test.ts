import { type CancellationToken, createAgent } from '@whoa/core';
import { callTools, reply } from '@whoa/core/model';
import { flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { scripted, tool } from '../../../../test/tasks/runner-set-up.ts';
import { followTask } from '../follow/follow.ts';
import { createTaskStore } from '../ledger/factory.ts';
import type { TaskStore } from '../store.ts';
import type { TaskRef } from '../task.ts';
import { type Background, cancelBackground, createBackground, createBackgroundKey } from './background.ts';
import { createTaskApprovals } from './questions/approvals.ts';
import { createRunner } from './store-runner.ts';

const tenant = 'acme';
const chat = { tenant, conversation: 'c' };
const STOP = { kind: 'user', message: 'enough' } as const;

/** A runner whose task `leave` leaves work running that only a cancel ends. */
function openWorker(store: TaskStore, background: Background = createBackground()) {
  const tokens: CancellationToken[] = [];
  const left: TaskRef[] = [];
  const runner = createRunner({
    store,
    background,
    agents: {
      leave: async () => {
        left.push(
          await background.start(
            ({ token, signal }) => {
              tokens.push(token);
              return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
            },
            { name: 'serve' },
          ),
        );
        return 'left it running';
      },
    },
  });
  const leave = (conversation?: string) => runner.run({ tenant, agent: 'leave', input: 'go', conversation });
  return { runner, tokens, left, leave, background, [Symbol.asyncDispose]: () => runner[Symbol.asyncDispose]() };
}

async function waitForEnd(store: TaskStore, ref: TaskRef) {
  for await (const seen of followTask(store, ref)) if (seen.type === 'end') return seen.task;
  throw new Error('It has no end');
}

test('background work outlives its task, and is stopped by its conversation, once', async () => {
  await using store = createTaskStore('memory:');
  await using worker = openWorker(store);
  expect(await cancelBackground(store, chat, STOP)).toEqual([]);
  for (const conversation of ['c', 'c', 'c/d', undefined])
    expect(await worker.leave(conversation)).toMatchObject({ status: 'success', answer: 'left it running' });
  expect(worker.background.live).toBe(4);
  expect(await store.get(worker.left[0]!)).toMatchObject({ status: 'running', inputs: ['serve'] });
  expect(await cancelBackground(store, { tenant: 'other', conversation: 'c' }, STOP)).toEqual([]);
  expect(await cancelBackground(store, chat, STOP)).toEqual(['accepted', 'accepted']);
  for (const ref of worker.left.slice(0, 2))
    expect(await waitForEnd(store, ref)).toMatchObject({
      status: 'cancelled',
      outcome: { reason: STOP, isComplete: false },
    });
  expect(worker.tokens.map(({ isCancelled }) => isCancelled)).toEqual([true, true, false, false]);
  expect(await cancelBackground(store, chat, STOP)).toEqual([]);
});

test('a stopped task leaves nothing running, even before its worker learns of it', async () => {
  await using store = createTaskStore('memory:');
  const background = createBackground();
  const started = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const said = Promise.withResolvers<string>();
  await using runner = createRunner({
    store,
    background,
    agents: {
      late: {
        async runTask() {
          started.resolve();
          await asked.promise;
          await background
            .start(() => Promise.resolve(said.resolve('started')))
            .catch((e: Error) => said.resolve(e.message));
          return { status: 'cancelled' };
        },
      },
    },
  });
  const { id } = await runner.start({ ...chat, agent: 'late', input: 'go' });
  await started.promise;
  await store.cancel({ tenant, id }, STOP, { mode: 'now' });
  asked.resolve();
  expect(await said.promise).toBe('background: not started, because its task was stopped');
  expect(await cancelBackground(store, chat, STOP)).toEqual([]);
  expect(background.live).toBe(0);
});

test('background work does not keep a worker from taking tasks, and work that it starts belongs to the same conversation', async () => {
  await using store = createTaskStore('memory:');
  const background = createBackground();
  const seen: string[] = [];
  const inner = Promise.withResolvers<void>();
  const wait = ({ signal }: { signal: AbortSignal }): Promise<never> =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
  await using runner = createRunner({
    store,
    background,
    agents: {
      leave: async () => {
        seen.push(background.owner());
        await background.start(async (context) => {
          seen.push(background.owner());
          await background.start(wait);
          inner.resolve();
          await wait(context);
        });
        return 'left';
      },
      next: () => Promise.resolve('next'),
    },
  });
  await runner.serve({ concurrency: 1 });
  await runner.run({ ...chat, agent: 'leave', input: 'go' });
  await inner.promise;
  expect(seen).toEqual(['["acme","c"]', '["acme","c"]']);
  const receipt = await store.create({ tenant, agent: 'next', input: 'go' });
  if (receipt.result !== 'created') throw new Error(receipt.result);
  expect(await waitForEnd(store, receipt.task)).toMatchObject({ outcome: { answer: 'next' } });
  expect(await cancelBackground(store, chat, STOP)).toEqual(['accepted', 'accepted']);
});

test('a task of any agent is stopped with the background it names; one in a conversation is not', async () => {
  await using store = createTaskStore('memory:');
  const task = { tenant, agent: 'elsewhere', input: 'go' };
  await store.create({ ...task, key: createBackgroundKey('c') });
  await store.create({ ...task, key: createBackgroundKey('c'), conversation: 'd' });
  expect(await cancelBackground(store, chat, STOP)).toEqual(['accepted']);
});

test('background work ends with its process, and another process reports it', async () => {
  await using store = createTaskStore('memory:');
  const worker = openWorker(store);
  await worker.leave('c');
  await worker.runner[Symbol.asyncDispose]();
  expect(worker.tokens[0]).toMatchObject({ isCancelled: true, reason: { kind: 'shutdown' } });
  await using other = openWorker(store);
  await other.runner.serve();
  const { status, outcome } = await waitForEnd(store, worker.left[0]!);
  expect({ status, message: outcome?.error?.message }).toEqual({
    status: 'failed',
    message: expect.stringContaining('The process that ran this work has ended') as string,
  });
});

test('work that ignores its stop is given up on', async () => {
  await using store = createTaskStore('memory:');
  const background = createBackground();
  const left = Promise.withResolvers<TaskRef>();
  await using runner = createRunner({
    store,
    background,
    agents: {
      leave: async () => {
        left.resolve(await background.start(() => new Promise(() => {})));
        return 'left';
      },
    },
  });
  await runner.run({ ...chat, agent: 'leave', input: 'go' });
  expect(await cancelBackground(store, chat, STOP)).toEqual(['accepted']);
  expect(await cancelBackground(store, chat, STOP)).toEqual(['unchanged']);
  const ref = await left.promise;
  expect(await store.cancel(ref, STOP, { mode: 'kill' })).toMatchObject({ result: 'escalated' });
  expect(await waitForEnd(store, ref)).toMatchObject({ status: 'cancelled', outcome: { reason: STOP } });
});

test('outside of a task nothing can be left running', async () => {
  await expect(createBackground().start(() => Promise.resolve())).rejects.toThrow('start was called outside a task');
});

test('a task whose background process runs stays with its worker while it waits for an answer', async () => {
  await using store = createTaskStore('memory:');
  const background = createBackground();
  const approvals = createTaskApprovals({ parkAfterMs: 0 });
  const end = Promise.withResolvers<void>();
  const planner = scripted(
    () => callTools([{ id: 'c1', tool: 'leave', input: {} }]),
    () => callTools([{ id: 'c2', tool: 'pay', input: {} }]),
    () => reply('Done.'),
  );
  const leave = tool('leave', async () => (await background.start(() => end.promise)).id, { effects: 'read' });
  const pay = tool('pay', () => 'paid', { effects: 'write' });
  const agent = createAgent({ name: 'clerk', planner, tools: [leave, pay], approve: approvals.approve });
  const stages: string[] = [];
  const parked = Promise.withResolvers<void>();
  const onLeft = ({ status }: { status: string }): void => {
    stages.push(status);
    if (status === 'parked') parked.resolve();
  };
  const hooks = { 'task-left': onLeft, 'task-end': onLeft };
  await using runner = createRunner({ store, background, approvals, agents: { clerk: agent }, hooks });
  const receipt = await store.create({ tenant, agent: 'clerk', input: 'go' });
  const { id } = (receipt as { task: { id: string } }).task;
  await runner.serve({ concurrency: 1 });
  while ((await store.questions({ tenant })).questions.length === 0) await flushMicrotasks();
  await flushMicrotasks();
  expect(stages).toEqual([]);
  expect(await store.get({ tenant, id })).toMatchObject({ stage: 'held', waiting: 1 });
  end.resolve();
  await parked.promise;
  expect(stages.toSorted()).toEqual(['parked', 'success']);
  expect(await store.get({ tenant, id })).toMatchObject({ stage: 'parked', waiting: 1 });
});
