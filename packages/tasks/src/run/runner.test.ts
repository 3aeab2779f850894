import {
  createAgent,
  createAgentTool,
  defineTool,
  type Message,
  type RunEvent,
  sleep,
  type Tool,
  type ToolContext,
} from '@whoa/core';
import type { Clock } from '@whoa/core/embed';
import { callTools, type Planner, reply, type Step } from '@whoa/core/model';
import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { alterStore } from '../../../../test/tasks/altered-store.ts';
import { claimFor, expireSessions } from '../../../../test/tasks/claimed.ts';
import { LeaseLostError, StoreBusyError } from '../errors.ts';
import { PendingQuestions } from '../follow/pending-questions.ts';
import type { TaskStore } from '../store.ts';
import { createMemoryStore } from '../stores/memory.ts';
import { UnknownOutcomeError } from '../unknown-outcome.ts';
import { createTaskApprovals, type TaskApprovals } from './approvals.ts';
import { createCancelMessage, createEventChannel } from './claim/channel.ts';
import type { RunnerEvent, RunnerOptions } from './runner.ts';
import { createRunner } from './store-runner.ts';
import type { Work } from './work.ts';

const anything = z.object({}).loose();
const TASK = { tenant: 'acme', agent: 'assistant', input: 'hello' };

type Execute = (input: Record<string, unknown>, context: ToolContext) => ReturnType<Tool['execute']>;

function tool(name: string, execute: Execute, rest: Partial<Tool> = {}): Tool {
  return {
    ...defineTool({ name, description: name, inputSchema: anything, effects: 'read', execute }),
    ...rest,
  } as Tool;
}

/** Answers the nth turn with the nth step; turns are counted by what the history says. */
function scripted(...steps: ((history: readonly Message[]) => Step)[]): Planner {
  return {
    next: (history) => {
      const turns = history.filter(({ role }) => role === 'assistant').length;
      return steps[Math.min(turns, steps.length - 1)]!(history);
    },
  };
}

/** Resolves when the thing has happened. */
function happening<T = void>(): { promise: Promise<T>; happen: (value: T) => void } {
  let happen: (value: T) => void = () => {};
  const promise = new Promise<T>((resolve) => (happen = resolve));
  return { promise, happen };
}

interface SetUp extends Partial<Omit<RunnerOptions, 'agents'>> {
  readonly work?: Work;
  readonly planner?: Planner;
  readonly tools?: readonly Tool[];
  readonly memory?: TaskStore;
}

function setUp({ work, planner, tools = [], memory, ...options }: SetUp = {}) {
  const world = createVirtualWorld();
  const store = memory ?? createMemoryStore({ world });
  const events: RunnerEvent[] = [];
  const { approvals } = options;
  const agent = createAgent({
    name: 'assistant',
    planner: planner ?? scripted(() => reply('hi')),
    tools,
    world,
    ...(approvals && { approve: (approvals as TaskApprovals).approve }),
  });
  const runnerOptions: RunnerOptions = {
    agents: { assistant: work ?? agent },
    world,
    hooks: { any: (event) => event.type !== 'hook-error' && events.push(event) },
    ...options,
    store,
  };
  return { world, store, events, agent, runnerOptions, runner: createRunner(runnerOptions) };
}

const idOf = async (store: TaskStore): Promise<string> => (await store.list({ tenant: 'acme' })).tasks[0]!.id;

test('an agent runs as a task, and the answer says what the store says', async () => {
  const { runner, store } = setUp();
  const response = await runner.run(TASK);
  expect(response).toMatchObject({ status: 'success', success: true, answer: 'hi', msg: '' });
  expect(await store.get({ tenant: 'acme', id: response.id })).toMatchObject({ status: 'success', epoch: 1 });
  expect(response.trajectory.map((event) => (event as { type: string }).type)).toContain('turn-end');
  await runner[Symbol.asyncDispose]();
});

test.each([null, 5, true, [1], {}, { role: 'assistant', content: 'mine' }, { role: 'user' }])(
  'an agent that is given %j fails its task, and no worker dies of it',
  async (input) => {
    const { runner, store } = setUp();
    const response = await runner.run({ ...TASK, input });
    expect(response).toMatchObject({ status: 'failed', msg: expect.stringMatching(/^input/) as string });
    expect(await store.get({ tenant: 'acme', id: response.id })).toMatchObject({ deaths: 0, attempts: 1 });
    expect((await runner.run(TASK)).status).toBe('success');
  },
);

test('any async function runs as a task', async () => {
  const { runner } = setUp({ work: ({ task }) => Promise.resolve(`did ${task.inputs[0] as string}`) });
  expect(await runner.run(TASK)).toMatchObject({ status: 'success', answer: 'did hello' });
});

test('work that throws makes the task fail, with its message', async () => {
  const { runner } = setUp({ work: () => Promise.reject(new Error('no luck')) });
  expect(await runner.run(TASK)).toMatchObject({ status: 'failed', success: false, msg: 'no luck' });
});

test('a task cancelled before it was taken never runs', async () => {
  const { runner, store } = setUp({ work: () => expect.unreachable('must not start') });
  const receipt = await store.create(TASK);
  const id = receipt.answer === 'created' ? receipt.task.id : '';
  await store.cancel({ tenant: 'acme', id }, { message: 'never mind' });
  expect(await runner.work({ tenant: 'acme', id })).toMatchObject({ status: 'cancelled', msg: 'never mind' });
});

const started = happening<AbortSignal>();

test('a cancel in the store stops the work by push, without waiting for a poll', async () => {
  const { runner, store, world } = setUp({
    work: async ({ signal, token }) => {
      started.happen(signal);
      await sleep(1_000_000, { clock: token.clock, token });
      return undefined;
    },
  });
  const running = runner.run(TASK);
  const signal = await started.promise;
  const now = world.clock.now();
  await store.cancel({ tenant: 'acme', id: await idOf(store) }, { by: 'ann' }, { mode: 'now' });
  expect(await running).toMatchObject({ status: 'cancelled' });
  expect(signal.aborted).toBe(true);
  expect(world.clock.now()).toBe(now);
});

/** A store whose watchers hear nothing: what is left is orders and polls. */
function deafStore(store: TaskStore): TaskStore {
  const nobody = { [Symbol.asyncDispose]: () => Promise.resolve() };
  return alterStore(store, (name, call) => (name === 'watch' ? Promise.resolve(nobody) : call()));
}

const untilCancelled: Work = async ({ token }) => {
  await sleep(1_000_000, { clock: token.clock, token });
  return undefined;
};

test('without a push a cancel arrives with the next beat', async () => {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  const { runner } = setUp({ memory: deafStore(inner), world, work: untilCancelled, leaseMs: 3_000 });
  const running = runner.run(TASK);
  await flushMicrotasks();
  await inner.cancel({ tenant: 'acme', id: await idOf(inner) }, {}, { mode: 'now' });
  await world.clock.advance(1_000);
  expect((await running).status).toBe('cancelled');
});

test('without a push and a poll a cancel arrives with the orders of the next append', async () => {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  const next = happening();
  const { runner } = setUp({
    memory: deafStore(inner),
    world,
    pollMs: 1_000_000,
    work: async ({ token, journal }) => {
      await next.promise;
      await journal({ type: 'step' });
      token.throwIfCancelled();
      return 'not stopped';
    },
  });
  const running = runner.run(TASK);
  await flushMicrotasks();
  await inner.cancel({ tenant: 'acme', id: await idOf(inner) });
  next.happen();
  expect((await running).status).toBe('cancelled');
});

test('without a push and a poll a cancel arrives with the orders of the next renewal', async () => {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  const { runner } = setUp({
    memory: deafStore(inner),
    world,
    work: untilCancelled,
    pollMs: 1_000_000,
    leaseMs: 9_000,
  });
  const running = runner.run(TASK);
  await flushMicrotasks();
  await inner.cancel({ tenant: 'acme', id: await idOf(inner) }, {}, { mode: 'now' });
  await world.clock.advance(3_000);
  expect((await running).status).toBe('cancelled');
});

test('a cancel message on the channel stops the task it names at once, and the store agrees', async () => {
  const channel = createEventChannel();
  const { runner, store, world } = setUp({ channel, work: untilCancelled });
  const running = runner.run(TASK);
  await flushMicrotasks();
  const id = await idOf(store);
  channel.emit(createCancelMessage({ tenant: 'acme', taskId: 't0-another' }));
  channel.emit(createCancelMessage({ tenant: 'other', taskId: id }));
  await flushMicrotasks();
  expect(runner.live).toBe(1);
  channel.emit({ category: 'task', topic: '__cancel', tenant: 'acme', taskId: id, payload: { msg: 'cancel by user' } });
  expect(await running).toMatchObject({ status: 'cancelled', msg: 'cancel by user' });
  expect(world.clock.now()).toBe(createVirtualWorld().clock.now());
  expect(await store.get({ tenant: 'acme', id })).toMatchObject({ outcome: { reason: { via: 'event' } } });
});

test('a cancel message may say how hard to stop, and what to undo', async () => {
  const channel = createEventChannel();
  const { runner, store, world } = setUp({ channel, work: untilCancelled });
  const running = runner.run(TASK);
  await flushMicrotasks();
  const target = { tenant: 'acme', taskId: await idOf(store) };
  channel.emit(createCancelMessage(target, { mode: { drainMs: 3_000, abortMs: 0 }, undo: true, by: 'ann' }));
  await world.clock.advance(2_999);
  expect(runner.live).toBe(1);
  expect((await store.get({ tenant: 'acme', id: target.taskId }))?.stop).toMatchObject({ level: 'drain', undo: true });
  await world.clock.advance(1);
  expect((await running).status).toBe('cancelled');
});

test('a cancel message stops a conversation, with what waits in it, and no other', async () => {
  const channel = createEventChannel();
  const { runner, world } = setUp({ channel, work: untilCancelled });
  const tasks = ['a', 'a', 'b'].map((conversation) =>
    runner.run({ ...TASK, conversation }, { policy: 'queue' }).then(({ status }) => status),
  );
  await flushMicrotasks();
  channel.emit(createCancelMessage({ tenant: 'other', conversation: 'a' }));
  await flushMicrotasks();
  expect(runner.live).toBe(2);
  channel.emit(createCancelMessage({ tenant: 'acme', conversation: 'a' }));
  expect(await Promise.all(tasks.slice(0, 2))).toEqual(['cancelled', 'cancelled']);
  expect(runner.live).toBe(1);
  channel.emit(createCancelMessage({ tenant: 'acme', all: true }));
  expect(await tasks[2]).toBe('cancelled');
  await world.clock.advance(10_000);
});

test('a cancel message for all stops every task of its tenant in this process, also waiting ones, and no others', async () => {
  const channel = createEventChannel();
  const { runner } = setUp({ channel, work: untilCancelled });
  const start = (tenant: string) =>
    runner.run({ ...TASK, tenant, conversation: 'c' }, { policy: 'queue' }).then(({ status }) => status);
  const tasks = [start('acme'), start('acme'), start('other')];
  await flushMicrotasks();
  channel.emit(createCancelMessage({ tenant: 'acme', all: true }));
  expect(await Promise.all(tasks.slice(0, 2))).toEqual(['cancelled', 'cancelled']);
  expect(runner.live).toBe(1);
  channel.emit(createCancelMessage({ tenant: 'other', all: true }));
  await tasks[2];
});

test.each([
  ['nothing', {}],
  ['no tenant', { taskId: 't0-a' }],
  ['a tenant alone', { tenant: 'acme' }],
  ['an empty task', { tenant: 'acme', taskId: '' }],
  ['two things', { tenant: 'acme', taskId: 't0-a', all: true }],
  ['all, but not truly', { tenant: 'acme', all: 'yes' }],
])('a cancel message that names %s is refused and stops nothing', async (_what, target) => {
  const channel = createEventChannel();
  const { runner, store } = setUp({ channel, work: untilCancelled });
  const running = runner.run(TASK);
  await flushMicrotasks();
  const message = { category: 'task', topic: '__cancel', payload: {}, ...target };
  expect(() => channel.emit(message)).toThrow(TypeError);
  expect(() => createCancelMessage(target as { tenant: string; all: true })).toThrow(/cancel message must name/);
  await flushMicrotasks();
  expect(runner.live).toBe(1);
  await store.cancel({ tenant: 'acme', id: await idOf(store) }, {}, { mode: 'now' });
  await running;
});

test('a cancel message stops the work also while the store cannot be reached', async () => {
  const channel = createEventChannel();
  const world = createVirtualWorld();
  const memory = alterStore(createMemoryStore({ world }), (name, call) =>
    name === 'cancel' ? Promise.reject(new Error('no route')) : call(),
  );
  const { runner, events } = setUp({ channel, work: untilCancelled, memory });
  const running = runner.run(TASK);
  await flushMicrotasks();
  channel.emit(createCancelMessage({ tenant: 'acme', all: true }));
  expect((await running).status).toBe('cancelled');
  expect(events).toContainEqual(expect.objectContaining({ type: 'store-error' }));
});

test('a channel and a checker can be added to a runner at work, and taken away', async () => {
  const channel = createEventChannel();
  const { runner, store, world } = setUp({ work: untilCancelled });
  const running = [runner.run(TASK), runner.run(TASK)];
  await flushMicrotasks();
  const { tasks } = await store.list({ tenant: 'acme' });
  const [first, second] = tasks.map(({ id }) => id) as [string, string];
  const listening = runner.listen(channel);
  channel.emit(createCancelMessage({ tenant: 'acme', taskId: first }));
  await flushMicrotasks();
  expect(runner.live).toBe(1);
  listening[Symbol.dispose]();
  channel.emit(createCancelMessage({ tenant: 'acme', taskId: second }));
  await flushMicrotasks();
  expect(runner.live).toBe(1);
  runner.setCancellationChecker(() => true);
  runner.setCancellationChecker(undefined);
  await world.clock.advance(1_000);
  expect(runner.live).toBe(1);
  runner.setCancellationChecker((id) => id === second);
  await world.clock.advance(1_000);
  expect((await Promise.all(running)).map(({ status }) => status)).toEqual(['cancelled', 'cancelled']);
});

test('a checker that says so before the work begins keeps it from beginning', async () => {
  let began = 0;
  const work: Work = () => Promise.resolve(`${++began}`);
  const asked: unknown[] = [];
  const cancellationChecker = async (id: string, { key }: { key?: string }) => {
    asked.push([id, key]);
    await flushMicrotasks();
    return true;
  };
  const { runner, world } = setUp({ cancellationChecker, work });
  const { id, status } = await runner.run({ ...TASK, key: 'mine' });
  expect({ status, began, asked }).toEqual({ status: 'cancelled', began: 0, asked: [[id, 'mine']] });
  expect(world.clock.now()).toBe(createVirtualWorld().clock.now());
});

test('a checker is asked before each turn and each wave, and one that says so stops right there', async () => {
  const order: string[] = [];
  const look = tool('look', () => {
    order.push('look');
    return 'seen';
  });
  const call = (id: string, dependsOn?: string[]) => ({ id, tool: 'look', input: {}, ...(dependsOn && { dependsOn }) });
  const planner: Planner = {
    next: (history) => {
      order.push('turn');
      return history.length > 1 ? reply('done') : callTools([call('1'), call('2'), call('3', ['1'])]);
    },
  };
  const run = async (stopAt: number) => {
    order.length = 0;
    let asked = 0;
    const cancellationChecker = (): boolean => {
      order.push('ask');
      return ++asked === stopAt;
    };
    const { runner, events } = setUp({ planner, tools: [look], cancellationChecker });
    const { status } = await runner.run(TASK);
    expect(events.filter(({ type }) => type.endsWith('error'))).toEqual([]);
    return [status, ...order].join(' ');
  };
  expect(await run(0)).toBe('success ask ask turn ask look look ask look ask turn');
  expect(await run(1)).toBe('cancelled ask');
  expect(await run(2)).toBe('cancelled ask ask');
  expect(await run(3)).toBe('cancelled ask ask turn ask');
  expect(await run(4)).toBe('cancelled ask ask turn ask look look ask');
  expect(await run(5)).toBe('cancelled ask ask turn ask look look ask look ask');
});

test('a checker is asked again while the work goes on, and stops it at once', async () => {
  let cancelled = false;
  const { runner, world } = setUp({ cancellationChecker: () => Promise.resolve(cancelled), work: untilCancelled });
  const running = runner.run(TASK);
  await world.clock.advance(5_000);
  expect(runner.live).toBe(1);
  cancelled = true;
  await world.clock.advance(1_000);
  expect((await running).status).toBe('cancelled');
});

test('a checker that fails is reported each time, and otherwise ignored', async () => {
  const work: Work = async ({ token }) => {
    await sleep(3_000, { clock: token.clock, token });
    return 'done';
  };
  const cancellationChecker = (): boolean => {
    throw new Error('the database is down');
  };
  const { runner, world, events } = setUp({ cancellationChecker, work });
  const running = runner.run(TASK);
  await flushMicrotasks();
  expect(events).toContainEqual(expect.objectContaining({ type: 'checker-error', error: expect.any(Error) as Error }));
  await world.clock.advance(3_000);
  expect((await running).status).toBe('success');
  expect(events.filter(({ type }) => type === 'checker-error').length).toBeGreaterThan(2);
});

test('a checker that never answers is reported, delays the work a bounded time, and no cancel', async () => {
  const answers: (() => void)[] = [];
  const cancellationChecker = () => new Promise<boolean>((resolve) => answers.push(() => resolve(true)));
  const { runner, world, store, events } = setUp({ cancellationChecker });
  const delayed = runner.run(TASK);
  await world.clock.advance(5_000);
  expect(events).toContainEqual(expect.objectContaining({ type: 'checker-error' }));
  await world.clock.advance(5_000);
  expect((await delayed).status).toBe('success');
  const stopped = runner.run(TASK);
  await flushMicrotasks();
  await store.cancel({ tenant: 'acme', id: (await store.list({ tenant: 'acme' })).tasks[0]!.id });
  expect((await stopped).status).toBe('cancelled');
  for (const answer of answers) answer();
  await flushMicrotasks();
  await runner[Symbol.asyncDispose]();
  expect(world.clock.pending).toBe(0);
});

test('the events of a task can be followed as they happen; a listener that fails harms nothing and is reported', async () => {
  const look = tool('look', () => 'seen');
  const planner = scripted(
    () => callTools([{ id: '1', tool: 'look', input: {} }]),
    () => reply('done'),
  );
  const errors: unknown[] = [];
  const { runner } = setUp({ planner, tools: [look], hooks: { 'hook-error': ({ error }) => errors.push(error) } });
  const seen: RunEvent[] = [];
  const { id, status } = await runner.run(TASK, {
    onEvent: (event) => {
      seen.push(event);
      if (event.type === 'turn-start') throw new Error(`turn ${event.turn}`);
    },
  });
  expect(status).toBe('success');
  expect(new Set(seen.map(({ runId }) => runId))).toEqual(new Set([`${id}.1`]));
  const types = seen.map(({ type }) => type);
  expect([types.at(0), types.at(-1)]).toEqual(['run-start', 'run-end']);
  expect(types).toContain('call-end');
  expect(errors).toEqual([new Error('turn 1'), new Error('turn 2')]);
});

test('work that another worker holds is not waited for where that is asked', async () => {
  const { runner, runnerOptions, store } = setUp({ work: untilCancelled });
  const running = runner.run(TASK);
  await flushMicrotasks();
  const ref = { tenant: 'acme', id: await idOf(store) };
  await using other = createRunner({ ...runnerOptions, worker: 'other' });
  expect(await other.work(ref, { wait: false })).toMatchObject({ status: 'running' });
  await store.cancel(ref, {}, { mode: 'now' });
  expect((await running).status).toBe('cancelled');
  expect(await other.work(ref, { wait: false })).toMatchObject({ status: 'cancelled' });
});

test('a token given with a task cancels it in the store too', async () => {
  const { runner, store } = setUp({ work: untilCancelled });
  const controller = new AbortController();
  const running = runner.run(TASK, { signal: controller.signal });
  await flushMicrotasks();
  controller.abort();
  const { id } = await running;
  expect(await store.get({ tenant: 'acme', id })).toMatchObject({
    status: 'cancelled',
    outcome: { reason: { via: 'signal' } },
  });
});

test('work that was done when the cancel came is cancelled and complete', async () => {
  const { runner, store } = setUp({
    work: async ({ task }) => {
      await store.cancel({ tenant: 'acme', id: task.id });
      return 'all done';
    },
  });
  const { id, status, answer } = await runner.run(TASK);
  expect([status, answer]).toEqual(['cancelled', 'all done']);
  expect((await store.get({ tenant: 'acme', id }))?.outcome?.complete).toBe(true);
});

test('work that is deaf is abandoned when the ladder ends', async () => {
  const { runner, store, world } = setUp({ work: () => new Promise(() => {}) });
  const running = runner.run(TASK);
  await flushMicrotasks();
  await store.cancel({ tenant: 'acme', id: await idOf(store) }, {}, { mode: 'now' });
  await world.clock.advance(2_000);
  expect((await running).status).toBe('cancelled');
});

test('one call can be stopped from outside; the run goes on', async () => {
  const started = happening<string>();
  const slow = tool('slow', async (_input, { callId, token }) => {
    started.happen(callId);
    await sleep(1_000_000, { clock: token.clock, token });
    return 'never';
  });
  const planner = scripted(
    () => callTools([{ id: 'c1', tool: 'slow', input: {} }]),
    () => reply('went on'),
  );
  const { runner, store } = setUp({ planner, tools: [slow] });
  const running = runner.run(TASK);
  await started.promise;
  await store.send({ tenant: 'acme', id: await idOf(store) }, { type: 'cancel-call', callId: 'c1' });
  expect(await running).toMatchObject({ status: 'success', answer: 'went on' });
});

test('a message sent to a running task is heard at the next boundary', async () => {
  const started = happening();
  const release = happening();
  const slow = tool('slow', async () => {
    started.happen();
    await release.promise;
    return 'ok';
  });
  const planner = scripted(
    () => callTools([{ id: 'c1', tool: 'slow', input: {} }]),
    (history) => reply(`heard ${JSON.stringify(history.at(-1))}`),
  );
  const { runner, store } = setUp({ planner, tools: [slow] });
  const running = runner.run(TASK);
  await started.promise;
  const ref = { tenant: 'acme', id: await idOf(store) };
  await store.send(ref, { type: 'steer', message: 'be brief' });
  await flushMicrotasks();
  release.happen();
  expect((await running).answer).toContain('be brief');
});

test('a call waits for a yes that comes through the store, also one that came before the question', async () => {
  const approvals = createTaskApprovals();
  const book = tool('book', () => 'booked', { effects: 'write' });
  const planner = scripted(
    () => callTools([{ id: 'c1', tool: 'book', input: {} }]),
    () => callTools([{ id: 'c2', tool: 'book', input: {} }]),
    (history) =>
      reply(
        history
          .filter(({ role }) => role === 'tool')
          .map((m) => (m as { content: string }).content)
          .join('; '),
      ),
  );
  const { runner, store } = setUp({ planner, tools: [book], approvals });
  const running = runner.run(TASK);
  await flushMicrotasks();
  const ref = { tenant: 'acme', id: await idOf(store) };
  await store.send(ref, { type: 'approve', callId: 'c2', approved: 'too dear' });
  await store.send(ref, { type: 'approve', callId: 'c1', approved: true });
  expect((await running).answer).toBe('booked; Not started: denied: too dear');
});

test.each([null, 5, { role: 'tool' }])('a run that is told %j goes on as if nothing had been said', async (message) => {
  const { promise: answered, happen: answer } = happening<string>();
  const { runner, store } = setUp({ planner: { next: async () => reply(await answered) } });
  const running = runner.run({ ...TASK, conversation: 'c1' });
  await flushMicrotasks();
  const ref = { tenant: 'acme', id: await idOf(store) };
  const sent = await store.send(ref, { type: 'steer', message });
  const behind = await store.create({ ...TASK, conversation: 'c1', input: message }, { policy: 'steer' });
  await flushMicrotasks();
  answer('done');
  expect(await running).toMatchObject({ status: 'success', answer: 'done' });
  const refusals = (await store.read(ref)).filter(({ event }) => (event as { answer?: string }).answer === 'refused');
  expect(sent).toMatchObject({ answer: 'accepted' });
  expect(refusals).toHaveLength(2);
  // What was sent as a task of its own says itself what is wrong with it.
  const { id } = (behind as { task: { id: string } }).task;
  expect(await runner.work({ tenant: 'acme', id })).toMatchObject({ status: 'failed' });
});

test('a worker that is shut down hands its task back, and another finishes it', async () => {
  const { runner, store, world, runnerOptions } = setUp({ work: untilCancelled });
  const running = runner.run(TASK);
  await flushMicrotasks();
  const id = await idOf(store);
  const disposed = runner[Symbol.asyncDispose]();
  await expect(running).rejects.toThrow(/shutdown/);
  await disposed;
  expect(await store.get({ tenant: 'acme', id })).toMatchObject({ status: 'init', attempts: 0, epoch: 2 });
  const other = createRunner({ ...runnerOptions, agents: { assistant: () => Promise.resolve('second try') } });
  expect(await other.work({ tenant: 'acme', id })).toMatchObject({ status: 'success', answer: 'second try' });
  await other[Symbol.asyncDispose]();
  expect(world.clock.pending).toBe(0);
});

test('a worker that is stopped gracefully lets a call finish before it hands its task back; asked again, it does not', async () => {
  for (const isHurried of [false, true]) {
    const ending = happening<string>();
    const started = happening();
    const seen: string[] = [];
    const slow = tool('slow', async (_, { signal }) => {
      started.happen();
      signal.addEventListener('abort', () => ending.happen('cut'));
      seen.push(await ending.promise);
      return { content: 'done' };
    });
    const { runner, store, world } = setUp({
      tools: [slow],
      planner: scripted(
        () => callTools([{ id: 'c1', tool: 'slow', input: {} }]),
        () => reply('over'),
      ),
    });
    await runner.serve();
    await store.create(TASK);
    await started.promise;
    const stopped = runner.stop();
    await flushMicrotasks();
    expect(seen).toEqual([]);
    const late = await store.create(TASK);
    if (isHurried) await runner.stop('now');
    else ending.happen('finished');
    await stopped;
    expect(seen).toEqual([isHurried ? 'cut' : 'finished']);
    const { tasks } = await store.list({ tenant: 'acme' });
    expect(tasks.map(({ status, attempts }) => ({ status, attempts }))).toEqual(
      Array(2).fill({ status: 'init', attempts: 0 }),
    );
    expect([late.answer, world.clock.pending]).toEqual(['created', 0]);
  }
});

test('a worker that serves no agents leaves their tasks to those who claim them by id', async () => {
  const { runner, store, world } = setUp({ work: () => Promise.resolve({ answer: 'done' }) });
  await runner.serve({ agents: [] });
  const receipt = await store.create(TASK);
  await world.clock.advance(10_000);
  if (receipt.answer !== 'created') throw new Error(receipt.answer);
  const { id } = receipt.task;
  expect(await store.get({ tenant: 'acme', id })).toMatchObject({ status: 'init', stage: 'ready' });
  expect(await runner.work({ tenant: 'acme', id }, { wait: false })).toMatchObject({ status: 'success' });
  await runner.stop();
});

test('a worker that lost its lease stops, publishes nothing and says so', async () => {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  let isFrozen = false;
  const store = alterStore(inner, (name, call) =>
    isFrozen && name === 'beat' ? Promise.reject(new Error('no route')) : call(),
  );
  const { runner, events } = setUp({ memory: store, world, work: () => new Promise(() => {}), leaseMs: 3_000 });
  const running = runner.run(TASK);
  running.catch(() => {});
  await flushMicrotasks();
  const id = await idOf(inner);
  isFrozen = true;
  await world.clock.advance(1_999);
  await expireSessions(inner, world, 3_000);
  await claimFor(inner, id, { worker: 'thief' });
  isFrozen = false;
  await world.clock.advance(3_000);
  await expect(running).rejects.toThrow(LeaseLostError);
  expect(await inner.get({ tenant: 'acme', id })).toMatchObject({ status: 'running', worker: 'thief', position: 0 });
  expect(events.at(-1)).toMatchObject({ type: 'task-end', status: 'lost' });
});

test('a worker that cannot reach the store stops its work before the lease ends', async () => {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  let down = false;
  const failing = alterStore(inner, (name, call) =>
    down && name !== 'watch' ? Promise.reject(new Error('the store is down')) : call(),
  );
  const stopped = happening<number>();
  const { runner } = setUp({
    memory: failing,
    world,
    leaseMs: 9_000,
    work: (context) => {
      context.token.onCancel(() => stopped.happen(world.clock.now()));
      return untilCancelled(context);
    },
  });
  const from = world.clock.now();
  const running = runner.run(TASK);
  running.catch(() => {});
  await flushMicrotasks();
  down = true;
  await world.clock.advance(9_000);
  expect((await stopped.promise) - from).toBeLessThanOrEqual(6_001);
  await expect(running).rejects.toThrow(LeaseLostError);
});

test('a worker whose machine slept asks whether it still has its tasks before it writes', async () => {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  const asked: string[] = [];
  const store = alterStore(inner, (name, call) => {
    asked.push(name);
    return call();
  });
  const own = createVirtualWorld();
  const clock = {
    now: () => own.clock.now(),
    wallNow: () => world.clock.now(),
    setTimer: (ms: number, callback: () => void) => own.clock.setTimer(ms, callback),
  };
  const awake = happening();
  const work: Work = async ({ journal }) => {
    await awake.promise;
    await journal({ type: 'step' });
    return 'done';
  };
  const { runner } = setUp({ memory: store, world: { ...own, clock }, leaseMs: 9_000, work });
  const running = runner.run(TASK);
  running.catch(() => {});
  await flushMicrotasks();
  const id = await idOf(inner);
  // The worker's clock stands still meanwhile.
  await expireSessions(inner, world, 9_000);
  await claimFor(inner, id, { worker: 'thief' });
  asked.length = 0;
  awake.happen();
  await expect(running).rejects.toThrow(LeaseLostError);
  expect(asked).toEqual(['beat', 'release']);
});

test('a call does not begin when its process was stopped until the lease was over', async () => {
  const own = createVirtualWorld();
  let stoppedMs = 0;
  const clock = {
    now: () => own.clock.now() + stoppedMs,
    setTimer: (ms: number, callback: () => void) => own.clock.setTimer(ms, callback),
  };
  const store = alterStore(createMemoryStore({ world: own }), async (name, call, args) => {
    const answer = await call();
    // The intent is written, and nothing moves here until long after: its timers are late.
    if (name === 'append' && JSON.stringify(args).includes('call-intent')) stoppedMs = 60_000;
    return answer;
  });
  let started = 0;
  const tools = [tool('pay', () => `${++started}`)];
  const planner = scripted(
    () => callTools([{ id: 'c1', tool: 'pay', input: {} }]),
    () => reply('paid'),
  );
  const { runner } = setUp({ memory: store, world: { ...own, clock }, leaseMs: 9_000, planner, tools });
  const running = runner.run(TASK);
  running.catch(() => {});
  await own.clock.advance(5_000);
  await expect(running).rejects.toThrow(LeaseLostError);
  expect(started).toBe(0);
});

test('what a worker hands back it writes to no more', async () => {
  const world = createVirtualWorld();
  const asked: string[] = [];
  const failing = alterStore(createMemoryStore({ world }), (name, call) => {
    asked.push(name);
    if (name === 'release') return new Promise(() => {});
    return name === 'beat' || name === 'append' ? Promise.reject(new Error('the store is down')) : call();
  });
  const work: Work = async ({ journal, token }) => {
    await Promise.race([journal({ type: 'step' }), sleep(60_000, { clock: world.clock, token })]);
    return 'done';
  };
  const { runner } = setUp({ memory: failing, world, leaseMs: 9_000, work });
  runner.run(TASK).catch(() => {});
  await world.clock.advance(9_000);
  expect(asked).toContain('append');
  expect(asked.slice(asked.indexOf('release'))).not.toContain('append');
});

test('a lease is counted from when it was asked for: an answer that comes late leaves less of it', async () => {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  const slow = alterStore(inner, async (name, call) => {
    if (name === 'beat') throw new Error('the store is down');
    const answer = await call();
    if (name === 'claim') await new Promise<void>((resolve) => world.clock.setTimer(2_500, resolve));
    return answer;
  });
  const stopped = happening<number>();
  const { runner } = setUp({
    memory: slow,
    world,
    leaseMs: 9_000,
    work: (context) => {
      context.token.onCancel(() => stopped.happen(world.clock.now()));
      return untilCancelled(context);
    },
  });
  const from = world.clock.now();
  const running = runner.run(TASK);
  running.catch(() => {});
  await world.clock.advance(9_000);
  expect((await stopped.promise) - from).toBeLessThanOrEqual(6_001);
  await expect(running).rejects.toThrow(LeaseLostError);
});

test.each([true, false])(
  'a task whose claim was answered late starts only once the store has renewed it (can it: %s)',
  async (isUp) => {
    const world = createVirtualWorld();
    const asked: string[] = [];
    const slow = alterStore(createMemoryStore({ world }), async (name, call) => {
      asked.push(name);
      if (name === 'beat' && !isUp) throw new StoreBusyError('the store is down');
      const answer = await call();
      if (name === 'claim') await new Promise<void>((resolve) => world.clock.setTimer(5_000, resolve));
      return answer;
    });
    const work: Work = () => {
      asked.push('work');
      return Promise.resolve('done');
    };
    const { runner } = setUp({ memory: slow, world, leaseMs: 9_000, work });
    const status = runner.run(TASK).then((response) => response.status, String);
    await world.clock.advance(5_000);
    expect(await status).toBe(isUp ? 'success' : 'StoreBusyError: the store is down');
    expect(asked.filter((name) => name === 'beat' || name === 'work')).toEqual(isUp ? ['beat', 'work'] : ['beat']);
  },
);

test('an agent this runner does not have is said so, and the task is left to others', async () => {
  const { runner, store } = setUp();
  for (const agent of ['other', 'constructor', '__proto__']) {
    await expect(runner.run({ ...TASK, agent })).rejects.toThrow(`no '${agent}', only assistant`);
  }
  expect(await store.get({ tenant: 'acme', id: await idOf(store) })).toMatchObject({ status: 'init' });
});

test('events are written less often while no client is reading', async () => {
  const planner: Planner = {
    async next(_history, { token, tell }) {
      for (let i = 0; i < 100; i++) {
        tell({ type: 'text', text: 'word ' });
        await sleep(100, { clock: token.clock, token });
      }
      return reply('word '.repeat(100));
    },
  };
  const { runner, store, world } = setUp({ planner });
  const running = runner.run(TASK);
  await world.clock.advance(2_000);
  const ref = { tenant: 'acme', id: await idOf(store) };
  expect(await store.read(ref, { watchMs: 60_000 })).toEqual([]);
  await world.clock.advance(300);
  const soon = await store.read(ref);
  expect(JSON.stringify(soon)).toContain('word word');
  await world.clock.advance(10_000);
  const { trajectory, answer } = await running;
  const types = trajectory.map((event) => (event as { type: string }).type);
  expect(types.at(-1)).toBe('turn-end');
  expect(answer).toBe('word '.repeat(100));
});

test('a write whose answer was lost is sent again and counts once', async () => {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  let losses = 0;
  const forgetful = alterStore(inner, async (name, call) => {
    const answer = await call();
    if ((name === 'append' || name === 'finish') && losses++ % 2 === 0) throw new Error('the answer was lost');
    return answer;
  });
  const { runner, events } = setUp({
    memory: forgetful,
    world,
    work: async ({ journal }) => {
      for (const step of [1, 2, 3]) await journal({ type: 'step', step });
      return 'done';
    },
  });
  const running = runner.run(TASK);
  await world.clock.advance(2_000);
  const { status, trajectory } = await running;
  expect([status, trajectory]).toEqual(['success', [1, 2, 3].map((step) => ({ type: 'step', step }))]);
  expect(events.filter(({ type }) => type === 'store-error').length).toBeGreaterThan(2);
});

test('the trajectory of a long task is whole', async () => {
  const { runner } = setUp({
    work: async ({ journal }) => {
      await Promise.all(Array.from({ length: 2_500 }, (_, step) => journal({ type: 'step', step })));
      return 'done';
    },
  });
  expect((await runner.run(TASK)).trajectory).toHaveLength(2_500);
});

test('a creation and a claim whose answers are lost are asked for again: one task, and it runs', async () => {
  const world = createVirtualWorld();
  const store = createMemoryStore({ world });
  const lost = new Set(['create', 'claim']);
  const losing = alterStore(store, async (name, call) => {
    const answer = await call();
    if (lost.delete(name)) throw new UnknownOutcomeError(name);
    return answer;
  });
  const { runner, events } = setUp({ memory: losing, planner: scripted(() => reply('done')), world });
  const running = runner.run(TASK);
  await world.clock.advance(1_000);
  expect(await running).toMatchObject({ status: 'success', answer: 'done' });
  expect((await store.list({ tenant: 'acme' })).tasks).toMatchObject([{ status: 'success', attempts: 0, epoch: 1 }]);
  expect(events.filter(({ type }) => type === 'store-error')).toHaveLength(2);
});

test('a worker that serves leaves tasks of other agents to others, and is not held up by them', async () => {
  const { runner, store, world } = setUp({ pollMs: 1_000 });
  const others: string[] = [];
  for (let i = 0; i < 40; i++) {
    const receipt = await store.create({ ...TASK, agent: i % 2 === 0 ? 'other' : 'constructor' });
    others.push((receipt as { task: { id: string } }).task.id);
    await world.clock.advance(1);
  }
  const own = await store.create(TASK);
  const ref = { tenant: 'acme', id: (own as { task: { id: string } }).task.id };
  await runner.serve({ concurrency: 3 });
  await flushMicrotasks();
  expect((await store.get(ref))?.status).toBe('success');
  await world.clock.advance(30_000);
  for (const id of others) expect(await store.get({ tenant: 'acme', id })).toMatchObject({ status: 'init', epoch: 0 });
  const later = await store.create(TASK);
  await world.clock.advance(2_000);
  const { id } = (later as { task: { id: string } }).task;
  expect((await store.get({ tenant: 'acme', id }))?.status).toBe('success');
  await runner[Symbol.asyncDispose]();
});

test('a task that was being cancelled when its worker died is settled by a worker that could not run it', async () => {
  const { runner, store, world } = setUp();
  const receipt = await store.create({ ...TASK, agent: 'other' });
  const { id } = (receipt as { task: { id: string } }).task;
  const ref = { tenant: 'acme', id };
  const claim = await claimFor(store, id, { worker: 'dead', leaseMs: 1_000 });
  await store.append(claim, { after: 0, events: [{ type: 'turn-start' }, { type: 'text', text: 'half' }] });
  await store.cancel(ref, { by: 'ann' });
  await expireSessions(store, world, 1_000);
  await runner.serve();
  await flushMicrotasks();
  expect(await store.get(ref)).toMatchObject({
    status: 'cancelled',
    outcome: { answer: 'half', reason: { by: 'ann' } },
  });
  await runner[Symbol.asyncDispose]();
});

test('tasks of other agents cost a worker nothing, however many wait', async () => {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  const asked: string[] = [];
  const store = alterStore(inner, (name, call) => {
    asked.push(name);
    return call();
  });
  for (let i = 0; i < 1_100; i++) await inner.create({ ...TASK, agent: 'other' });
  const { runner } = setUp({ memory: store, world, pollMs: 1_000 });
  await runner.serve({ concurrency: 5 });
  await world.clock.advance(3_000);
  expect(asked).toEqual(['watch', 'take', 'take', 'take', 'take']);
  await runner[Symbol.asyncDispose]();
});

test('a run whose store never answers again ends with LeaseLostError when its lease is over', async () => {
  const world = createVirtualWorld();
  const store = createMemoryStore({ world });
  let isGone = false;
  const mortal = alterStore(store, (_, call) => (isGone ? Promise.reject(new Error('gone')) : call()));
  const work: Work = ({ journal }) => {
    isGone = true;
    journal({ type: 'last words' }).catch(() => {});
    return Promise.resolve('done');
  };
  const { runner } = setUp({ memory: mortal, work, world, leaseMs: 3_000 });
  const failure = runner.run(TASK).catch((error: unknown) => error);
  await world.clock.advance(10_000);
  expect(await failure).toBeInstanceOf(LeaseLostError);
  expect((await store.get({ tenant: 'acme', id: await idOf(store) }))?.status).toBe('running');
});

test('a worker whose clock is ahead of the store waits for a held task and does not hammer the store', async () => {
  const world = createVirtualWorld();
  const { clock } = world;
  const behind: Clock = {
    now: () => clock.now() - 60_000,
    setTimer: (ms, callback) => clock.setTimer(ms, callback),
  };
  const inner = createMemoryStore({ world: { ...world, clock: behind } });
  let claims = 0;
  const store = alterStore(inner, (name, call) => {
    if (name === 'claim') claims++;
    return call();
  });
  const { runner } = setUp({ memory: store, work: () => Promise.resolve('done'), world });
  const created = await inner.create(TASK);
  const { id } = (created as { task: { id: string } }).task;
  await claimFor(inner, id, { worker: 'other' });
  const response = runner.work({ tenant: 'acme', id });
  await world.clock.advance(1_000);
  expect(claims).toBeGreaterThan(1);
  expect(claims).toBeLessThan(12);
  const ended = response.catch(String);
  await runner.stop('now');
  expect(await ended).toBe('CancelledError: Cancelled (shutdown)');
});

test('a question of a sub-agent has an id of its own, and a yes to its parent’s call does not answer it', async () => {
  const approvals = createTaskApprovals();
  let booked = 0;
  const book = tool('book', () => `booked ${++booked}`, { effects: 'write' });
  const once = (name: string): Planner =>
    scripted(
      () => callTools([{ id: 'c1', tool: name, input: { task: 'book it' } }]),
      (history) => reply((history.at(-1) as { content: string }).content),
    );
  const helper = createAgent({ name: 'helper', planner: once('book'), tools: [book] });
  const tools = [createAgentTool(helper, { description: 'Helps' }) as Tool];
  const { runner, store } = setUp({ planner: once('helper'), tools, approvals });
  const running = runner.run(TASK);
  await flushMicrotasks();
  const ref = { tenant: 'acme', id: await idOf(store) };
  const pending = async () => {
    const questions = new PendingQuestions();
    for (const entry of await store.read(ref)) questions.note(entry);
    return questions.list.map(({ question }) => [question.callId, question.tool]);
  };
  expect(await pending()).toEqual([['c1', 'helper']]);
  await store.send(ref, { type: 'approve', callId: 'c1', approved: true });
  await vi.waitFor(async () => expect(await pending()).toEqual([['c1/c1', 'helper › book']]));
  expect(booked).toBe(0);
  await store.send(ref, { type: 'approve', callId: 'c1/c1', approved: true });
  expect((await running).answer).toBe('booked 1');
  expect(await pending()).toEqual([]);
});
