import { type RunEvent, sleep } from '@whoa/core';
import { callTools, type Planner, reply } from '@whoa/core/model';
import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { alterStore } from '../../../../test/tasks/altered-store.ts';
import { claimFor, expireSessions } from '../../../../test/tasks/claimed.ts';
import {
  deferred,
  readFirstId,
  scripted,
  setUp,
  TASK,
  tool,
  untilCancelled,
} from '../../../../test/tasks/runner-set-up.ts';
import { JournalGapError } from '../errors.ts';
import { createMemoryStore } from '../ledger/memory.ts';
import { UnknownOutcomeError } from '../unknown-outcome.ts';
import { createRunner } from './store-runner.ts';

test('an agent runs as a task, and the answer equals the stored one', async () => {
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
    expect(await store.get({ tenant: 'acme', id: response.id })).toMatchObject({ crashes: 0, attempts: 1 });
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

test('a store that was restored to an earlier state takes the work away, instead of being asked for ever', async () => {
  const world = createVirtualWorld();
  let appends = 0;
  const restored = alterStore(createMemoryStore({ world }), (name, call) => {
    if (name === 'append' && appends++ > 0) throw new JournalGapError('t', 1, 2);
    return call();
  });
  const { runner } = setUp({
    memory: restored,
    world,
    work: async ({ journal }) => {
      for (const step of [1, 2, 3]) await journal({ type: 'step', step });
      return 'done';
    },
  });
  const running = runner.run(TASK);
  const lost = running.catch((error: unknown) => error);
  await world.clock.advance(2_000);
  expect(await lost).toMatchObject({ code: 'LEASE_LOST', cause: { code: 'JOURNAL_GAP' } });
  expect(appends).toBe(2);
});

test('a task cancelled before it was taken never runs', async () => {
  const { runner, store } = setUp({ work: () => expect.unreachable('must not start') });
  const receipt = await store.create(TASK);
  const id = receipt.result === 'created' ? receipt.task.id : '';
  await store.cancel({ tenant: 'acme', id }, { message: 'never mind' });
  expect(await runner.runExisting({ tenant: 'acme', id })).toMatchObject({ status: 'cancelled', msg: 'never mind' });
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
  const ref = { tenant: 'acme', id: await readFirstId(store) };
  await using other = createRunner({ ...runnerOptions, worker: 'other' });
  expect(await other.runExisting(ref, { wait: false })).toMatchObject({ status: 'running' });
  await store.cancel(ref, {}, { mode: 'now' });
  expect((await running).status).toBe('cancelled');
  expect(await other.runExisting(ref, { wait: false })).toMatchObject({ status: 'cancelled' });
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
  expect((await store.get({ tenant: 'acme', id }))?.outcome?.isComplete).toBe(true);
});

test('work that ignores its signal is abandoned when the ladder ends', async () => {
  const { runner, store, world } = setUp({ work: () => new Promise(() => {}) });
  const running = runner.run(TASK);
  await flushMicrotasks();
  await store.cancel({ tenant: 'acme', id: await readFirstId(store) }, {}, { mode: 'now' });
  await world.clock.advance(2_000);
  expect((await running).status).toBe('cancelled');
});

test('a worker that is shut down hands its task back, and another finishes it', async () => {
  const { runner, store, world, runnerOptions } = setUp({ work: untilCancelled });
  const running = runner.run(TASK);
  await flushMicrotasks();
  const id = await readFirstId(store);
  const disposed = runner[Symbol.asyncDispose]();
  await expect(running).rejects.toThrow(/shutdown/);
  await disposed;
  expect(await store.get({ tenant: 'acme', id })).toMatchObject({ status: 'init', attempts: 0, epoch: 2 });
  const other = createRunner({ ...runnerOptions, agents: { assistant: () => Promise.resolve('second try') } });
  expect(await other.runExisting({ tenant: 'acme', id })).toMatchObject({ status: 'success', answer: 'second try' });
  await other[Symbol.asyncDispose]();
  expect(world.clock.pending).toBe(0);
});

test('a worker that is stopped gracefully lets a call finish before it hands its task back; asked again, it does not', async () => {
  for (const isHurried of [false, true]) {
    const ending = deferred<string>();
    const started = deferred();
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
    expect([late.result, world.clock.pending]).toEqual(['created', 0]);
  }
});

test('a worker that serves no agents leaves their tasks to those who claim them by id', async () => {
  const { runner, store, world } = setUp({ work: () => Promise.resolve({ answer: 'done' }) });
  await runner.serve({ agents: [] });
  const receipt = await store.create(TASK);
  await world.clock.advance(10_000);
  if (receipt.result !== 'created') throw new Error(receipt.result);
  const { id } = receipt.task;
  expect(await store.get({ tenant: 'acme', id })).toMatchObject({ status: 'init', stage: 'ready' });
  expect(await runner.runExisting({ tenant: 'acme', id }, { wait: false })).toMatchObject({ status: 'success' });
  await runner.stop();
});

test('an agent this runner does not have is reported, and the task is left to others', async () => {
  const { runner, store } = setUp();
  for (const agent of ['other', 'constructor', '__proto__']) {
    await expect(runner.run({ ...TASK, agent })).rejects.toThrow(`no '${agent}', only assistant`);
  }
  expect(await store.get({ tenant: 'acme', id: await readFirstId(store) })).toMatchObject({ status: 'init' });
});

test('events are written less often while no client is reading', async () => {
  const planner: Planner = {
    async next(_history, { token, emit }) {
      for (let i = 0; i < 100; i++) {
        emit({ type: 'text', text: 'word ' });
        await sleep(100, { clock: token.clock, token });
      }
      return reply('word '.repeat(100));
    },
  };
  const { runner, store, world } = setUp({ planner });
  const running = runner.run(TASK);
  await world.clock.advance(2_000);
  const ref = { tenant: 'acme', id: await readFirstId(store) };
  const read = async (): Promise<string> => JSON.stringify(await store.read(ref));
  // Only the first write of its claim.
  expect(await read()).not.toContain('word word word');
  await store.watch({ ...ref, words: true }, () => {});
  await flushMicrotasks();
  const first = await read();
  expect(first).toContain('word word word');
  // The next word comes in up to 100 ms, and waits for 750 ms.
  await world.clock.advance(700);
  expect(await read()).toBe(first);
  await world.clock.advance(200);
  expect(await read()).not.toBe(first);
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
  const { runner, store, world } = setUp({ pollIntervalMs: 1_000 });
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

test('tasks of other agents cost a worker nothing, no matter how many wait', async () => {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  const asked: string[] = [];
  const store = alterStore(inner, (name, call) => {
    asked.push(name);
    return call();
  });
  for (let i = 0; i < 1_100; i++) await inner.create({ ...TASK, agent: 'other' });
  const { runner } = setUp({ memory: store, world, pollIntervalMs: 1_000 });
  await runner.serve({ concurrency: 5 });
  await world.clock.advance(3_000);
  expect(asked).toEqual(['watch', 'take', 'take', 'take', 'take']);
  await runner[Symbol.asyncDispose]();
});
