import type { World } from '@whoa/core/embed';
import { createVirtualWorld } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { alterStore } from '../../../../test/tasks/altered-store.ts';
import { StoreBusyError } from '../errors.ts';
import { createMemoryStore } from '../ledger/memory.ts';
import type { TaskStore } from '../store.ts';
import { HandBack } from './hand-back.ts';
import type { Holder } from './session.ts';
import { Sweeper } from './sweeper.ts';
import { WorkerContext } from './worker-context.ts';
import { WorkerSession } from './worker-session.ts';
import type { ClaimRef } from './worker-store.ts';

const LEASE_MS = 3_000;

const world = () => createVirtualWorld();

function createSession(store: TaskStore, options: { world: World; worker?: string }): WorkerSession {
  const context = new WorkerContext({ store, leaseMs: LEASE_MS, worker: 'w1', ...options });
  const sweeper = new Sweeper(context, () => {});
  return new WorkerSession(context, { handBack: new HandBack(context), sweeper });
}

/** The response to the first take does not arrive. */
function withFirstTakeLost(store: TaskStore, heartbeat: (call: () => Promise<unknown>) => Promise<unknown>): TaskStore {
  let lost = 1;
  return alterStore(store, async (name, call) => {
    if (name === 'heartbeat') return heartbeat(call);
    const answer = await call();
    if (name === 'take' && lost-- > 0) throw new StoreBusyError('the response was lost');
    return answer;
  });
}

async function takeOne(session: WorkerSession): Promise<ClaimRef> {
  const answer = await session.take(['assistant'], 1);
  if (answer.result !== 'taken') throw new Error(`the store answered ${answer.result}`);
  const [{ claim } = expect.fail('nothing was taken')] = answer.tasks;
  return claim;
}

const createHolder = (claim: ClaimRef, heard: string[]): Holder => ({
  claim,
  unconfirmed: undefined,
  applyOrders: () => {},
  fence: () => void heard.push('fence'),
  onLeaseLost: (error) => void heard.push(error.code),
});

const TASK = { tenant: 'acme', agent: 'assistant', input: 'hello' };

test('a task whose session ends between its claim and its work is lost immediately', async () => {
  const at = world();
  await using store = createMemoryStore({ world: at });
  const session = createSession(store, { world: at });
  const neighbour = createSession(store, { world: at, worker: 'w2' });
  await store.create(TASK);
  const claim = await takeOne(session);
  // Sessions do not expire in a store that gets no requests.
  for (let second = 0; second < 4; second++) {
    await at.clock.advance(1_000);
    await neighbour.take(['nobody'], 1);
  }
  await store.sweep();
  expect(await session.take(['assistant'], 1)).toEqual({ result: 'session-ended' });

  const heard: string[] = [];
  session.current.hold(createHolder(claim, heard));
  expect(heard).toEqual(['LEASE_LOST']);
});

test('tasks of a take whose response was lost are kept from the first request, not from its repeat', async () => {
  const at = world();
  await using store = createMemoryStore({ world: at });
  const asked: string[] = [];
  const losing = withFirstTakeLost(store, (call) => {
    asked.push(`beat at ${at.clock.now()}`);
    return call();
  });
  const session = createSession(losing, { world: at });
  await store.create(TASK);
  await expect(takeOne(session)).rejects.toThrow('the response was lost');
  await at.clock.advance(LEASE_MS * 0.9);
  const repeatedAt = at.clock.now();
  const heard: string[] = [];
  session.current.hold(createHolder(await takeOne(session), heard));
  expect(asked, 'it was renewed before its work').toEqual([`beat at ${repeatedAt}`]);
  await at.clock.advance(LEASE_MS * 0.2);
  expect(heard).toEqual([]);
  const [{ id } = expect.fail('there is no task')] = (await store.list({ tenant: 'acme' })).tasks;
  const other = { session: 'other', worker: 'other', leaseMs: LEASE_MS, claim: 'other' };
  expect(await store.claim(id, other), 'the store agrees').toEqual({ result: 'held', until: repeatedAt + LEASE_MS });
});

test('a repeated take of a session that has ended meanwhile starts nothing', async () => {
  const at = world();
  await using store = createMemoryStore({ world: at });
  const session = createSession(
    withFirstTakeLost(store, () => Promise.resolve({ result: 'session-ended' })),
    { world: at },
  );
  await store.create(TASK);
  await expect(takeOne(session)).rejects.toThrow('the response was lost');
  await at.clock.advance(LEASE_MS * 0.9);
  expect(await session.take(['assistant'], 1)).toEqual({ result: 'session-ended' });
});

test('a comparison does not hand back the task of a take that it overtakes', async () => {
  const at = world();
  await using store = createMemoryStore({ world: at });
  const [isTaken, isCompared] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let isSlow = false;
  const altered = alterStore(store, async (name, call) => {
    if (name === 'held') await isTaken.promise;
    const answer = await call();
    if (name === 'heartbeat') return { ...(answer as object), shouldReconcile: true };
    if (name !== 'take' || !isSlow) return answer;
    isTaken.resolve();
    await isCompared.promise;
    return answer;
  });
  const session = createSession(altered, { world: at });
  const heard: string[] = [];
  await store.create(TASK);
  session.current.hold(createHolder(await takeOne(session), heard));
  await session.current.heartbeat();
  const comparing = session.current.heartbeat();
  await at.clock.advance(0);
  await store.create(TASK);
  isSlow = true;
  const taking = takeOne(session);
  await comparing;
  await at.clock.advance(0);
  isCompared.resolve();
  const { id } = await taking;
  expect(await store.get({ tenant: 'acme', id })).toMatchObject({ stage: 'held' });
  expect(heard).toEqual([]);
  session.current.stop();
});

test('a beat of the last session that hangs does not hold up the next session', async () => {
  const at = world();
  await using store = createMemoryStore({ world: at });
  const beats: string[] = [];
  const altered = alterStore(store, (name, call, args) => {
    if (name !== 'heartbeat') return call();
    const { session } = args[0] as { session: string };
    beats.push(session);
    return beats.length === 1 ? new Promise(() => {}) : call();
  });
  const session = createSession(altered, { world: at });
  const heard: string[] = [];
  await store.create(TASK);
  session.current.hold(createHolder(await takeOne(session), heard));
  await at.clock.advance(LEASE_MS);
  expect(heard).toEqual(['fence', 'LEASE_LOST']);
  await store.create(TASK);
  session.current.hold(createHolder(await takeOne(session), heard));
  session.current.scheduleHeartbeat();
  await at.clock.advance(0);
  expect(new Set(beats).size, 'the next session has beaten').toBe(2);
  session.current.stop();
});

test('a session that stops its work takes nothing more until the store has confirmed it', async () => {
  const at = world();
  await using store = createMemoryStore({ world: at });
  let isUp = true;
  const takes: number[] = [];
  const altered = alterStore(store, (name, call) => {
    if (name === 'take') takes.push(at.clock.now());
    if (name === 'heartbeat' && !isUp) throw new StoreBusyError('the store is down');
    return call();
  });
  const session = createSession(altered, { world: at });
  const heard: string[] = [];
  await store.create(TASK);
  session.current.hold(createHolder(await takeOne(session), heard));
  isUp = false;
  await at.clock.advance(LEASE_MS * 0.7);
  expect(new Set(heard)).toEqual(new Set(['fence']));
  await store.create(TASK);
  await expect(session.take(['assistant'], 1)).rejects.toThrow('not yet confirmed');
  expect(takes).toHaveLength(1);
  isUp = true;
  await takeOne(session);
  expect(takes).toHaveLength(2);
  session.current.stop();
});

/**
 * A store whose heartbeats are answered while the process is suspended. The process resumes after its lease has expired
 * and before its timers fire.
 */
function stoppedInBeats(store: TaskStore, at: ReturnType<typeof world>): { store: TaskStore; world: World } {
  let stoppedMs = 0;
  const clock: World['clock'] = {
    now: () => at.clock.now() + stoppedMs,
    setTimer: (ms, callback) => at.clock.setTimer(ms, callback),
  };
  const altered = alterStore(store, async (name, call) => {
    const answer = await call();
    if (name === 'heartbeat') stoppedMs += LEASE_MS;
    return answer;
  });
  return { store: altered, world: { ...at, clock } };
}

test('a beat whose response took longer than the lease does not keep the session', async () => {
  const at = world();
  await using store = createMemoryStore({ world: at });
  const stopped = stoppedInBeats(store, at);
  const session = createSession(stopped.store, stopped);
  await store.create(TASK);
  const heard: string[] = [];
  session.current.hold(createHolder(await takeOne(session), heard));
  await session.current.heartbeat();
  expect(heard).toEqual(['LEASE_LOST']);
});

test('tasks that were renewed for longer than the lease are not started', async () => {
  const at = world();
  await using store = createMemoryStore({ world: at });
  const stopped = stoppedInBeats(
    withFirstTakeLost(store, (call) => call()),
    at,
  );
  const session = createSession(stopped.store, stopped);
  await store.create(TASK);
  await expect(takeOne(session)).rejects.toThrow('the response was lost');
  await at.clock.advance(LEASE_MS * 0.9);
  expect(await session.take(['assistant'], 1)).toEqual({ result: 'session-ended' });
});
