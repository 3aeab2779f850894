import { sleep } from '@whoa/core';
import type { Clock } from '@whoa/core/embed';
import { callTools, reply } from '@whoa/core/model';
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
import { LeaseLostError, StoreBusyError } from '../errors.ts';
import { createMemoryStore } from '../ledger/memory.ts';
import type { TaskHandler } from '../run/work.ts';

test('a worker that lost its lease stops, publishes nothing and reports it', async () => {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  let isFrozen = false;
  const store = alterStore(inner, (name, call) =>
    isFrozen && name === 'heartbeat' ? Promise.reject(new Error('no route')) : call(),
  );
  const { runner, events } = setUp({ memory: store, world, work: () => new Promise(() => {}), leaseMs: 3_000 });
  const running = runner.run(TASK);
  running.catch(() => {});
  await flushMicrotasks();
  const id = await readFirstId(inner);
  isFrozen = true;
  await world.clock.advance(1_999);
  await expireSessions(inner, world, 3_000);
  await claimFor(inner, id, { worker: 'thief' });
  isFrozen = false;
  await world.clock.advance(3_000);
  await expect(running).rejects.toThrow(LeaseLostError);
  expect(await inner.get({ tenant: 'acme', id })).toMatchObject({ status: 'running', worker: 'thief', position: 0 });
  expect(events.at(-1)).toMatchObject({ type: 'task-left', status: 'lost' });
});

test('a worker that cannot reach the store stops its work before the lease ends', async () => {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  let down = false;
  const failing = alterStore(inner, (name, call) =>
    down && name !== 'watch' ? Promise.reject(new Error('the store is down')) : call(),
  );
  const stopped = deferred<number>();
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
  const awake = deferred();
  const work: TaskHandler = async ({ journal }) => {
    await awake.promise;
    await journal({ type: 'step' });
    return 'done';
  };
  const { runner } = setUp({ memory: store, world: { ...own, clock }, leaseMs: 9_000, work });
  const running = runner.run(TASK);
  running.catch(() => {});
  await flushMicrotasks();
  const id = await readFirstId(inner);
  // The worker's clock is stopped meanwhile.
  await expireSessions(inner, world, 9_000);
  await claimFor(inner, id, { worker: 'thief' });
  asked.length = 0;
  awake.happen();
  await expect(running).rejects.toThrow(LeaseLostError);
  expect(asked).toEqual(['heartbeat', 'release']);
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

test('a worker does not write to a task that it has released', async () => {
  const world = createVirtualWorld();
  const asked: string[] = [];
  const failing = alterStore(createMemoryStore({ world }), (name, call) => {
    asked.push(name);
    if (name === 'release') return new Promise(() => {});
    return name === 'heartbeat' || name === 'append' ? Promise.reject(new Error('the store is down')) : call();
  });
  const work: TaskHandler = async ({ journal, token }) => {
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
    if (name === 'heartbeat') throw new Error('the store is down');
    const answer = await call();
    if (name === 'claim') await new Promise<void>((resolve) => world.clock.setTimer(2_500, resolve));
    return answer;
  });
  const stopped = deferred<number>();
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
      if (name === 'heartbeat' && !isUp) throw new StoreBusyError('the store is down');
      const answer = await call();
      if (name === 'claim') await new Promise<void>((resolve) => world.clock.setTimer(5_000, resolve));
      return answer;
    });
    const work: TaskHandler = () => {
      asked.push('work');
      return Promise.resolve('done');
    };
    const { runner } = setUp({ memory: slow, world, leaseMs: 9_000, work });
    const status = runner.run(TASK).then((response) => response.status, String);
    await world.clock.advance(5_000);
    expect(await status).toBe(isUp ? 'success' : 'StoreBusyError: the store is down');
    expect(asked.filter((name) => name === 'heartbeat' || name === 'work')).toEqual(
      isUp ? ['heartbeat', 'work'] : ['heartbeat'],
    );
  },
);

test('a run whose store never answers again ends with LeaseLostError when its lease is over', async () => {
  const world = createVirtualWorld();
  const store = createMemoryStore({ world });
  let isGone = false;
  const mortal = alterStore(store, (_, call) => (isGone ? Promise.reject(new Error('gone')) : call()));
  const work: TaskHandler = ({ journal }) => {
    isGone = true;
    journal({ type: 'last words' }).catch(() => {});
    return Promise.resolve('done');
  };
  const { runner } = setUp({ memory: mortal, work, world, leaseMs: 3_000 });
  const failure = runner.run(TASK).catch((error: unknown) => error);
  await world.clock.advance(10_000);
  expect(await failure).toBeInstanceOf(LeaseLostError);
  expect((await store.get({ tenant: 'acme', id: await readFirstId(store) }))?.status).toBe('running');
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
  const response = runner.runExisting({ tenant: 'acme', id });
  await world.clock.advance(1_000);
  expect(claims).toBeGreaterThan(1);
  expect(claims).toBeLessThan(12);
  const ended = response.catch(String);
  await runner.stop('now');
  expect(await ended).toBe('CancelledError: Cancelled (shutdown)');
});
