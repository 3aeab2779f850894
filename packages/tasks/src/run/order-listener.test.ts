import { sleep } from '@whoa/core';
import { callTools, type Planner, reply } from '@whoa/core/model';
import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { alterStore } from '../../../../test/tasks/altered-store.ts';
import {
  deferred,
  readFirstId,
  setUp,
  storeWithoutHints,
  TASK,
  tool,
  untilCancelled,
} from '../../../../test/tasks/runner-set-up.ts';
import { createMemoryStore } from '../ledger/memory.ts';
import { createCancelMessage, createEventChannel } from './channel.ts';
import type { TaskHandler } from './work.ts';

const started = deferred<AbortSignal>();

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
  await store.cancel({ tenant: 'acme', id: await readFirstId(store) }, { by: 'ann' }, { mode: 'now' });
  expect(await running).toMatchObject({ status: 'cancelled' });
  expect(signal.aborted).toBe(true);
  expect(world.clock.now()).toBe(now);
});

test('without a push a cancel arrives with the next beat', async () => {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  const { runner } = setUp({ memory: storeWithoutHints(inner), world, work: untilCancelled, leaseMs: 3_000 });
  const running = runner.run(TASK);
  await flushMicrotasks();
  await inner.cancel({ tenant: 'acme', id: await readFirstId(inner) }, {}, { mode: 'now' });
  await world.clock.advance(1_000);
  expect((await running).status).toBe('cancelled');
});

test('without a push and a poll a cancel arrives with the orders of the next append', async () => {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  const next = deferred();
  const { runner } = setUp({
    memory: storeWithoutHints(inner),
    world,
    pollIntervalMs: 1_000_000,
    work: async ({ token, journal }) => {
      await next.promise;
      await journal({ type: 'step' });
      token.throwIfCancelled();
      return 'not stopped';
    },
  });
  const running = runner.run(TASK);
  await flushMicrotasks();
  await inner.cancel({ tenant: 'acme', id: await readFirstId(inner) });
  next.happen();
  expect((await running).status).toBe('cancelled');
});

test('without a push and a poll a cancel arrives with the orders of the next renewal', async () => {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  const { runner } = setUp({
    memory: storeWithoutHints(inner),
    world,
    work: untilCancelled,
    pollIntervalMs: 1_000_000,
    leaseMs: 9_000,
  });
  const running = runner.run(TASK);
  await flushMicrotasks();
  await inner.cancel({ tenant: 'acme', id: await readFirstId(inner) }, {}, { mode: 'now' });
  await world.clock.advance(3_000);
  expect((await running).status).toBe('cancelled');
});

test('a cancel message on the channel stops the task it names immediately, and the store agrees', async () => {
  const channel = createEventChannel();
  const { runner, store, world } = setUp({ channel, work: untilCancelled });
  const running = runner.run(TASK);
  await flushMicrotasks();
  const id = await readFirstId(store);
  channel.emit(createCancelMessage({ tenant: 'acme', taskId: 't-another' }));
  channel.emit(createCancelMessage({ tenant: 'other', taskId: id }));
  await flushMicrotasks();
  expect(runner.live).toBe(1);
  channel.emit({ category: 'task', topic: '__cancel', tenant: 'acme', taskId: id, payload: { msg: 'cancel by user' } });
  expect(await running).toMatchObject({ status: 'cancelled', msg: 'cancel by user' });
  expect(world.clock.now()).toBe(createVirtualWorld().clock.now());
  expect(await store.get({ tenant: 'acme', id })).toMatchObject({ outcome: { reason: { via: 'event' } } });
});

test('a cancel message may contain the mode and undo', async () => {
  const channel = createEventChannel();
  const { runner, store, world } = setUp({ channel, work: untilCancelled });
  const running = runner.run(TASK);
  await flushMicrotasks();
  const target = { tenant: 'acme', taskId: await readFirstId(store) };
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
  ['no tenant', { taskId: 't-a' }],
  ['a tenant alone', { tenant: 'acme' }],
  ['an empty task', { tenant: 'acme', taskId: '' }],
  ['two things', { tenant: 'acme', taskId: 't-a', all: true }],
  ['all, but not truly', { tenant: 'acme', all: 'yes' }],
])('a cancel message that names %s is rejected and stops nothing', async (_what, target) => {
  const channel = createEventChannel();
  const { runner, store } = setUp({ channel, work: untilCancelled });
  const running = runner.run(TASK);
  await flushMicrotasks();
  const message = { category: 'task', topic: '__cancel', payload: {}, ...target };
  expect(() => channel.emit(message)).toThrow(TypeError);
  expect(() => createCancelMessage(target as { tenant: string; all: true })).toThrow(/cancel message needs/);
  await flushMicrotasks();
  expect(runner.live).toBe(1);
  await store.cancel({ tenant: 'acme', id: await readFirstId(store) }, {}, { mode: 'now' });
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

test('a checker that asks for a stop before the work begins keeps it from beginning', async () => {
  let began = 0;
  const work: TaskHandler = () => Promise.resolve(`${++began}`);
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

test('a checker is asked before each turn and each wave, and one that asks for a stop stops it right there', async () => {
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

test('a checker is asked again while the work continues, and stops it immediately', async () => {
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
  const work: TaskHandler = async ({ token }) => {
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
