import { createAgent, createAgentTool, defineTool, type Json, type Tool, type Usage } from '@whoa/core';
import { callTools, type Planner, reply, type Step } from '@whoa/core/model';
import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { alterStore } from '../../../../test/tasks/altered-store.ts';
import { answerCall } from '../../../../test/tasks/answer-call.ts';
import { claimFor, expireSessions } from '../../../../test/tasks/claimed.ts';
import { createMemoryStore } from '../ledger/memory.ts';
import type { TaskStore } from '../store.ts';
import type { TaskActivity, TaskOutcome } from '../task.ts';
import { entryFor } from './journal/entry.ts';
import { createTaskApprovals } from './questions/approvals.ts';
import type { RunnerOptions } from './runner.ts';
import { createRunner } from './store-runner.ts';
import type { TaskHandler } from './work.ts';

const TASK = { tenant: 'acme', agent: 'assistant', input: 'book it' };

function createTool(name: string, rest: Partial<Tool> = {}): Tool {
  const execute = (): string => `${name} ran`;
  const made = defineTool({ name, description: name, inputSchema: z.object({}), effects: 'read', execute });
  return { ...made, ...rest } as Tool;
}

const used = (inputTokens: number, outputTokens: number, isComplete = true): Usage => {
  return { inputTokens, outputTokens, isComplete };
};

const spending = ({ message, calls }: Step, usage: Usage): Step => ({ message: { ...message, usage }, calls });
const calling = (...names: string[]): Step => callTools(names.map((tool, i) => ({ id: `c${i}`, tool, input: {} })));

/** Takes one step after the other, of all its runs together. */
function inSteps(...steps: (Step | (() => Promise<Step>))[]): Planner {
  let taken = 0;
  return {
    next: async () => {
      const step = steps[taken++] ?? reply('done');
      return typeof step === 'function' ? step() : step;
    },
  };
}

interface SetUp extends Partial<Omit<RunnerOptions, 'agents'>> {
  readonly planner?: Planner;
  readonly tools?: readonly Tool[];
  readonly work?: TaskHandler;
  readonly alter?: (store: TaskStore) => TaskStore;
}

function setUp({ planner = inSteps(), tools = [], work, alter = (store) => store, ...options }: SetUp) {
  const world = createVirtualWorld();
  const store = createMemoryStore({ world });
  const { approvals } = options;
  const agent = createAgent({
    name: 'assistant',
    planner,
    tools,
    world,
    ...(approvals && { approve: (approvals as ReturnType<typeof createTaskApprovals>).approve }),
  });
  const runner = createRunner({ ...options, world, store: alter(store), agents: { assistant: work ?? agent } });
  return { world, store, runner };
}

async function listed(store: TaskStore): Promise<{
  id: string;
  tenant: string;
  waiting?: number;
  activity?: TaskActivity;
  outcome?: Pick<TaskOutcome, 'usage'>;
}> {
  return (await store.list({ tenant: 'acme' })).tasks[0]!;
}

test('turns, calls and usage are counted, and agree with the outcome', async () => {
  const planner = inSteps(spending(calling('look', 'pay'), used(10, 1)), spending(reply('done'), used(20, 2)));
  const { runner, store } = setUp({ planner, tools: [createTool('look'), createTool('pay')] });
  await runner.run(TASK);
  const { activity, outcome } = await listed(store);
  expect(activity).toEqual({ turns: 2, calls: 2, usage: used(30, 3) });
  expect(outcome?.usage).toEqual(activity?.usage);
});

test('a list shows what a running task has done, and that a reply may still use more', async () => {
  const [called, asked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const [result, answer] = [Promise.withResolvers<string>(), Promise.withResolvers<Step>()];
  const look = createTool('look', {
    execute: () => {
      called.resolve();
      return result.promise;
    },
  });
  const second = (): Promise<Step> => {
    asked.resolve();
    return answer.promise;
  };
  const planner = inSteps(spending(calling('look'), used(10, 1)), second);
  const { runner, store, world } = setUp({ planner, tools: [look] });
  const running = runner.run(TASK);
  await called.promise;
  expect((await listed(store)).activity).toEqual({ turns: 1, calls: 1, usage: used(10, 1) });
  result.resolve('seen');
  await asked.promise;
  await world.clock.advance(60_000);
  expect((await listed(store)).activity).toMatchObject({ turns: 1, usage: used(10, 1, false) });
  answer.resolve(reply('done'));
  await running;
  expect((await listed(store)).activity).toEqual({ turns: 2, calls: 1, usage: used(10, 1) });
});

/** How many questions wait, and what else was counted. */
async function readWaiting(store: TaskStore): Promise<(number | undefined)[]> {
  const { waiting, activity } = await listed(store);
  return [waiting, activity?.turns, activity?.calls];
}

/** A task whose agent asks whether it may pay, and then pays for as long as it likes. */
async function asking(rest: Partial<Tool> = {}) {
  const paying = Promise.withResolvers<string>();
  const approvals = createTaskApprovals();
  const execute = (): Promise<string> => paying.promise;
  const pay = createTool('pay', { effects: 'write', execute, ...rest });
  const made = setUp({ planner: inSteps(calling('pay')), tools: [pay], approvals });
  const running = made.runner.run(TASK);
  await flushMicrotasks();
  return { ...made, running, paying, ref: await listed(made.store) };
}

test('a question is shown while it waits, and no longer once it is answered', async () => {
  const { store, running, ref, paying } = await asking();
  expect((await listed(store)).waiting).toBe(1);
  await answerCall(store, ref, { callId: 'c0', decision: 'yes' });
  await flushMicrotasks();
  expect(await readWaiting(store)).toEqual([undefined, 1, 1]);
  paying.resolve('paid');
  expect(await running).toMatchObject({ status: 'success' });
});

test.each(['no', 'never'] as const)('a question that is answered with %s waits no more', async (decision) => {
  const { store, running, ref } = await asking();
  await answerCall(store, ref, { callId: 'c0', decision });
  expect(await running).toMatchObject({ status: 'success' });
  expect(await readWaiting(store)).toEqual([undefined, 2, 1]);
});

test('a question about a cancelled call waits no more, though the task continues', async () => {
  const { store, running, ref } = await asking();
  await store.send(ref, { type: 'cancel-call', callId: 'c0' });
  await running;
  expect(await readWaiting(store)).toEqual([undefined, 2, 1]);
});

test('a question of a cancelled task waits no more', async () => {
  const { store, running, ref } = await asking();
  await store.cancel(ref);
  expect(await running).toMatchObject({ status: 'cancelled' });
  expect(await readWaiting(store)).toEqual([undefined, 1, 1]);
});

test('a question of a task that is handed back still waits', async () => {
  const { store, running, runner } = await asking();
  await runner[Symbol.asyncDispose]();
  await running.catch(() => {});
  expect(await listed(store)).toMatchObject({ status: 'init', waiting: 1, activity: { turns: 1, calls: 1 } });
});

test('a call that is cancelled before its question is ready asks nothing, and the next call can ask', async () => {
  const previewing = Promise.withResolvers<void>();
  const ready = Promise.withResolvers<{ title: string }>();
  const preview = (): Promise<{ title: string }> => {
    previewing.resolve();
    return ready.promise;
  };
  const approvals = createTaskApprovals();
  const tools = [
    createTool('pay', { effects: 'write', preview } as unknown as Partial<Tool>),
    createTool('book', { effects: 'write' }),
  ];
  const { store, runner } = setUp({ planner: inSteps(calling('pay', 'book')), tools, approvals });
  const running = runner.run(TASK);
  await previewing.promise;
  const ref = await listed(store);
  await store.send(ref, { type: 'cancel-call', callId: 'c0' });
  await flushMicrotasks();
  ready.resolve({ title: 'pay' });
  await flushMicrotasks();
  expect((await listed(store)).waiting).toBe(1);
  await answerCall(store, ref, { callId: 'c1', decision: 'yes' });
  expect(await running).toMatchObject({ status: 'success' });
});

/** A task whose worker did this much and then died. */
async function crashed(
  activity: TaskActivity,
  events: Parameters<TaskStore['append']>[1]['events'],
  isCancelled = false,
) {
  const planner = inSteps(spending(reply('done'), used(5, 5)));
  const made = setUp({ planner, tools: [createTool('look')] });
  const { store, world, runner } = made;
  const receipt = await store.create(TASK);
  const id = receipt.result === 'created' ? receipt.task.id : '';
  const claim = await claimFor(store, id, { worker: 'dead', leaseMs: 1_000 });
  await store.append(claim, { after: 0, events, activity });
  if (isCancelled) await store.cancel({ tenant: 'acme', id });
  await expireSessions(store, world, 1_000);
  await runner.runExisting({ tenant: 'acme', id });
  return listed(store);
}

const STARTED = { type: 'run-start', agent: 'assistant', input: { role: 'user', content: 'book it' } };
const ended = ({ message }: Step): Json => entryFor({ type: 'turn-end', turn: 1, message });

test('a worker continues from what a lost one had counted', async () => {
  const before = { turns: 1, calls: 1, usage: used(10, 1) };
  const { activity, outcome } = await crashed(before, [STARTED, ended(calling('look'))]);
  expect(activity).toEqual({ turns: 2, calls: 1, usage: used(15, 6) });
  expect(outcome?.usage).toEqual(used(15, 6));
});

test('the usage of a reply that was lost with its worker is unknown', async () => {
  const before = { turns: 0, calls: 0, usage: used(0, 0, false) };
  const { activity, outcome } = await crashed(before, [STARTED, { type: 'turn-start', turn: 1 }]);
  expect([activity?.usage, outcome?.usage]).toEqual([used(5, 5, false), used(5, 5, false)]);
});

test('the usage of lost workers is in the outcome of a task that only has to be ended', async () => {
  const before = { turns: 1, calls: 0, usage: used(10, 1) };
  const finished = await crashed(before, [STARTED, ended(reply('said'))]);
  const cancelled = await crashed(before, [STARTED, ended(reply('said'))], true);
  expect([finished.outcome?.usage, cancelled.outcome?.usage]).toEqual([used(10, 1), used(10, 1)]);
});

test('agents inside calls count for the usage only', async () => {
  const helper = createAgent({ name: 'helper', planner: inSteps(spending(reply('helped'), used(100, 10))) });
  const tool = createAgentTool(helper, { name: 'ask_helper', description: 'asks' }) as unknown as Tool;
  const first = callTools([{ id: 'c0', tool: 'ask_helper', input: { task: 'help' } }]);
  const { runner, store } = setUp({ planner: inSteps(spending(first, used(10, 1))), tools: [tool] });
  await runner.run(TASK);
  const { activity, outcome } = await listed(store);
  expect(activity).toEqual({ turns: 2, calls: 1, usage: used(110, 11) });
  expect(outcome?.usage).toEqual(used(110, 11));
});

test('a turn counts once, however often it has to be written', async () => {
  let lost = 0;
  const alter = (store: TaskStore): TaskStore =>
    alterStore(store, async (name, call) => {
      const answer = await call();
      if (name === 'append' && lost++ % 2 === 0) throw new Error('the answer was lost');
      return answer;
    });
  const { runner, store, world } = setUp({ planner: inSteps(calling('look')), tools: [createTool('look')], alter });
  const running = runner.run(TASK);
  let isOver = false;
  running.finally(() => (isOver = true)).catch(() => {});
  while (!isOver) await world.clock.advance(100);
  expect((await listed(store)).activity).toEqual({ turns: 2, calls: 1 });
  expect(lost).toBeGreaterThan(2);
});

test('work that is not an agent has no activity', async () => {
  const work: TaskHandler = async ({ journal }) => {
    await journal({ type: 'turn-end', message: 'of its own kind' });
    return 'done';
  };
  const { runner, store } = setUp({ work });
  await runner.run(TASK);
  expect(await listed(store)).not.toHaveProperty('activity');
});
