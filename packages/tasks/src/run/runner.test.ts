import {
  callTools,
  createAgent,
  defineTool,
  type Message,
  type Planner,
  reply,
  type Step,
  sleep,
  type Tool,
  type ToolContext,
} from '@whoa/core';
import { createVirtualWorld, letEverythingReact } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { alterStore } from '../../test/altered-store.ts';
import { LeaseLostError } from '../errors.ts';
import type { TaskStore } from '../store.ts';
import { createMemoryStore } from '../stores/memory.ts';
import { UnknownOutcomeError } from '../unknown-outcome.ts';
import { type Approvals, createApprovals } from './approvals.ts';
import { createCancelMessage, createEventChannel } from './channel.ts';
import type { RunnerEvent, RunnerOptions } from './runner.ts';
import { createRunner } from './store-runner.ts';
import type { Work } from './work.ts';

const anything = z.object({}).loose();
const TASK = { tenant: 'acme', agent: 'assistant', input: 'hello' };

type Execute = (input: Record<string, unknown>, context: ToolContext) => ReturnType<Tool['execute']>;

function tool(name: string, execute: Execute, rest: Partial<Tool> = {}): Tool {
  return { ...defineTool({ name, description: name, input: anything, effects: 'read', execute }), ...rest } as Tool;
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
    ...(approvals && { approve: (approvals as Approvals).approve }),
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
  await store.cancel({ tenant: 'acme', id: await idOf(store) }, { by: 'ann' }, { how: 'now' });
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

test('without a push a cancel arrives with the next poll', async () => {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  const { runner } = setUp({ memory: deafStore(inner), world, work: untilCancelled, pollMs: 1_000 });
  const running = runner.run(TASK);
  await letEverythingReact();
  await inner.cancel({ tenant: 'acme', id: await idOf(inner) }, {}, { how: 'now' });
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
  await letEverythingReact();
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
  await letEverythingReact();
  await inner.cancel({ tenant: 'acme', id: await idOf(inner) }, {}, { how: 'now' });
  await world.clock.advance(3_000);
  expect((await running).status).toBe('cancelled');
});

test('a cancel message on the channel stops the task it names, and the store agrees', async () => {
  const channel = createEventChannel();
  const { runner, store } = setUp({ channel, work: untilCancelled });
  const running = runner.run(TASK);
  await letEverythingReact();
  channel.emit(createCancelMessage('t0-another'));
  await letEverythingReact();
  expect(runner.live).toBe(1);
  const id = await idOf(store);
  channel.emit({ category: 'task', topic: '__cancel', taskId: id, payload: { msg: 'cancel by user' } });
  await letEverythingReact();
  expect(await store.get({ tenant: 'acme', id })).toMatchObject({ stop: { reason: { via: 'event' } } });
  await store.cancel({ tenant: 'acme', id }, {}, { how: 'now' });
  expect(await running).toMatchObject({ status: 'cancelled', msg: 'cancel by user' });
});

test('a checker that says so stops the task', async () => {
  let cancelled = false;
  const { runner, world } = setUp({ cancellationChecker: () => Promise.resolve(cancelled), work: untilCancelled });
  const running = runner.run(TASK);
  await world.clock.advance(5_000);
  expect(runner.live).toBe(1);
  cancelled = true;
  await world.clock.advance(20_000);
  expect((await running).status).toBe('cancelled');
});

test('a checker that fails is reported and otherwise ignored', async () => {
  const work: Work = async ({ token }) => {
    await sleep(3_000, { clock: token.clock, token });
    return 'done';
  };
  const cancellationChecker = (): boolean => {
    throw new Error('the database is down');
  };
  const { runner, world, events } = setUp({ cancellationChecker, work });
  const running = runner.run(TASK);
  await world.clock.advance(3_000);
  expect((await running).status).toBe('success');
  expect(events.filter(({ type }) => type === 'checker-error').length).toBeGreaterThan(0);
});

test('a checker that fails stops the task where that is the policy', async () => {
  const cancellationChecker = () => Promise.reject(new Error('the database is down'));
  const { runner, world } = setUp({ cancellationChecker, whenCheckerFails: 'cancel', work: untilCancelled });
  const running = runner.run(TASK);
  await world.clock.advance(20_000);
  expect((await running).status).toBe('cancelled');
});

test('a token given with a task cancels it in the store too', async () => {
  const { runner, store } = setUp({ work: untilCancelled });
  const controller = new AbortController();
  const running = runner.run(TASK, { signal: controller.signal });
  await letEverythingReact();
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
  await letEverythingReact();
  await store.cancel({ tenant: 'acme', id: await idOf(store) }, {}, { how: 'now' });
  await world.clock.advance(2_000);
  expect((await running).status).toBe('cancelled');
});

test('one call can be stopped from outside; the run goes on', async () => {
  const begun = happening<string>();
  const slow = tool('slow', async (_input, { callId, token }) => {
    begun.happen(callId);
    await sleep(1_000_000, { clock: token.clock, token });
    return 'never';
  });
  const planner = scripted(
    () => callTools([{ id: 'c1', tool: 'slow', input: {} }]),
    () => reply('went on'),
  );
  const { runner, store } = setUp({ planner, tools: [slow] });
  const running = runner.run(TASK);
  await begun.promise;
  await store.send({ tenant: 'acme', id: await idOf(store) }, { type: 'cancel-call', callId: 'c1' });
  expect(await running).toMatchObject({ status: 'success', answer: 'went on' });
});

test('a message sent to a running task is heard at the next boundary', async () => {
  const begun = happening();
  const release = happening();
  const slow = tool('slow', async () => {
    begun.happen();
    await release.promise;
    return 'ok';
  });
  const planner = scripted(
    () => callTools([{ id: 'c1', tool: 'slow', input: {} }]),
    (history) => reply(`heard ${JSON.stringify(history.at(-1))}`),
  );
  const { runner, store } = setUp({ planner, tools: [slow] });
  const running = runner.run(TASK);
  await begun.promise;
  const ref = { tenant: 'acme', id: await idOf(store) };
  await store.send(ref, { type: 'steer', message: 'be brief' });
  await letEverythingReact();
  release.happen();
  expect((await running).answer).toContain('be brief');
});

test('a call waits for a yes that comes through the store, also one that came before the question', async () => {
  const approvals = createApprovals();
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
  await letEverythingReact();
  const ref = { tenant: 'acme', id: await idOf(store) };
  await store.send(ref, { type: 'approve', callId: 'c2', approved: 'too dear' });
  await store.send(ref, { type: 'approve', callId: 'c1', approved: true });
  expect((await running).answer).toBe('booked; Not started: denied: too dear');
});

test('a worker that is shut down hands its task back, and another finishes it', async () => {
  const { runner, store, world, runnerOptions } = setUp({ work: untilCancelled });
  const running = runner.run(TASK);
  await letEverythingReact();
  const id = await idOf(store);
  const disposed = runner[Symbol.asyncDispose]();
  await expect(running).rejects.toThrow(/shutdown/);
  await disposed;
  expect(await store.get({ tenant: 'acme', id })).toMatchObject({ status: 'init', attempts: 0, epoch: 1 });
  const other = createRunner({ ...runnerOptions, agents: { assistant: () => Promise.resolve('second try') } });
  expect(await other.work({ tenant: 'acme', id })).toMatchObject({ status: 'success', answer: 'second try' });
  await other[Symbol.asyncDispose]();
  expect(world.clock.pending).toBe(0);
});

test('a worker that lost its lease stops, publishes nothing and says so', async () => {
  const { runner, store, world, events } = setUp({ work: () => new Promise(() => {}), leaseMs: 3_000 });
  const running = runner.run(TASK);
  running.catch(() => {});
  await letEverythingReact();
  const id = await idOf(store);
  const record = (await store.get({ tenant: 'acme', id }))!;
  await store.release(id, record.epoch);
  expect((await store.claim(id, 'thief', 60_000)).answer).toBe('claimed');
  await world.clock.advance(3_000);
  await expect(running).rejects.toThrow(LeaseLostError);
  expect(await store.get({ tenant: 'acme', id })).toMatchObject({ status: 'running', worker: 'thief', position: 0 });
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
  await letEverythingReact();
  down = true;
  await world.clock.advance(9_000);
  expect((await stopped.promise) - from).toBeLessThanOrEqual(6_001);
  await expect(running).rejects.toThrow(LeaseLostError);
});

test('a lease is counted from when it was asked for: an answer that comes late leaves less of it', async () => {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  const slow = alterStore(inner, async (name, call) => {
    if (name === 'renew') throw new Error('the store is down');
    const answer = await call();
    if (name === 'claim') await new Promise<void>((resolve) => world.clock.setTimer(5_000, resolve));
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

test('an agent this runner does not have is said so, and the task is left to others', async () => {
  const { runner, store } = setUp();
  for (const agent of ['other', 'constructor', '__proto__']) {
    await expect(runner.run({ ...TASK, agent })).rejects.toThrow(`no '${agent}', only assistant`);
  }
  expect(await store.get({ tenant: 'acme', id: await idOf(store) })).toMatchObject({ status: 'init' });
});

test('events are written seldom, and more often as soon as somebody reads along', async () => {
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
  // The claim that was not answered holds until its lease ends.
  await world.clock.advance(20_000);
  expect(await running).toMatchObject({ status: 'success', answer: 'done' });
  expect((await store.list({ tenant: 'acme' })).tasks).toMatchObject([{ status: 'success', attempts: 2 }]);
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
  await letEverythingReact();
  expect((await store.get(ref))?.status).toBe('success');
  await world.clock.advance(30_000);
  for (const id of others) expect(await store.get({ tenant: 'acme', id })).toMatchObject({ status: 'init', epoch: 1 });
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
  await store.claim(id, 'dead', 1_000);
  await store.append(id, 1, { after: 0, events: [{ type: 'turn-start' }, { type: 'text', text: 'half' }] });
  await store.cancel(ref, { by: 'ann' });
  await world.clock.advance(1_000);
  await runner.serve();
  await letEverythingReact();
  expect(await store.get(ref)).toMatchObject({
    status: 'cancelled',
    outcome: { answer: 'half', reason: { by: 'ann' } },
  });
  await runner[Symbol.asyncDispose]();
});

test('more tasks of other agents than can be remembered do not keep a worker busy for ever', async () => {
  const { runner, store, world } = setUp({ pollMs: 1_000 });
  for (let i = 0; i < 1_100; i++) await store.create({ ...TASK, agent: 'other' });
  await runner.serve({ concurrency: 5 });
  await world.clock.advance(3_000);
  const { tasks } = await store.list({ tenant: 'acme', limit: 2_000 });
  const claims = tasks.reduce((sum, { epoch }) => sum + epoch, 0);
  expect(claims).toBeGreaterThan(900);
  expect(claims).toBeLessThan(1_100);
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
