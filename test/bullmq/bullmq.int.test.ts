// BullMQ in front of a store, on a real Redis: the queue decides when, the store decides what.
import { type BullmqEngine, createBullmqEngine } from '@whoa/bullmq';
import { createAgent, defineTool } from '@whoa/core';
import { callTools, ModelError, reply } from '@whoa/core/model';
import { createScriptedModel } from '@whoa/core/testing';
import {
  createMemoryStore,
  createRunner,
  createTaskApprovals,
  createTaskStore,
  type RunnerOptions,
  type TaskHandler,
  type TaskStore,
} from '@whoa/tasks';
import { type Job, Queue } from 'bullmq';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { type BorrowedServer, borrowPostgres, borrowRedis } from '../servers/borrow.ts';
import { startRedis } from '../servers/redis.ts';
import { answerCall } from '../tasks/answer-call.ts';
import { type Child, startChild } from '../tasks/child.ts';
import { scripted } from '../tasks/runner-set-up.ts';

const TASK = { tenant: 'acme', agent: 'assistant', input: 'hello' };

let redis: BorrowedServer;
beforeAll(async () => void (redis = await borrowRedis()));
afterAll(() => redis[Symbol.asyncDispose]());

let queues = 0;

interface SetUp {
  readonly store?: TaskStore;
  readonly queue?: Queue;
  readonly work?: TaskHandler;
  readonly worker?: Parameters<BullmqEngine['serve']>[1];
  readonly approvals?: ReturnType<typeof createTaskApprovals>;
  readonly waitForProvider?: RunnerOptions['waitForProvider'];
  readonly reofferIntervalMs?: number;
}

/** An engine that serves a function, unless there is none. */
async function setUp({ work, worker, reofferIntervalMs = 60_000, ...given }: SetUp = {}) {
  const { approvals, waitForProvider } = given;
  const store = given.store ?? createMemoryStore();
  const queue =
    given.queue ?? new Queue(`tickets-${queues++}`, { connection: { host: '127.0.0.1', port: redis.port } });
  const errors: Error[] = [];
  queue.on('error', (error) => errors.push(error));
  const engine = createBullmqEngine({ store, queue, agents: ['assistant'], reofferIntervalMs });
  if (work) {
    const runner = createRunner({
      store: engine.store,
      agents: { assistant: work },
      ...(approvals && { approvals }),
      ...(waitForProvider && { waitForProvider }),
    });
    await engine.serve(runner, { drainDelay: 1, ...worker });
  }
  return {
    store,
    queue,
    errors,
    engine,
    async [Symbol.asyncDispose]() {
      await engine[Symbol.asyncDispose]();
      await queue.close();
    },
  };
}

async function create(engine: BullmqEngine, task: object = {}): Promise<{ tenant: string; id: string }> {
  const receipt = await engine.store.create({ ...TASK, ...task });
  if (!('task' in receipt)) throw new Error(receipt.result);
  return { tenant: TASK.tenant, id: receipt.task.id };
}

const POLL = { timeout: 30_000, interval: 10 };

async function statusIs(store: TaskStore, ref: { tenant: string; id: string }, status: string): Promise<void> {
  await expect.poll(async () => (await store.get(ref))?.status, POLL).toBe(status);
}

async function ticketIs(queue: Queue, id: string, state: string): Promise<Job> {
  await expect.poll(() => queue.getJobState(id), POLL).toBe(state);
  return (await queue.getJob(id)) as Job;
}

/** Work that counts its starts and ends on request. */
function heldWork() {
  const started: unknown[] = [];
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => (end = resolve));
  const work: TaskHandler = async ({ task, token, signal }) => {
    started.push(task.inputs[0]);
    await Promise.race([ended, new Promise((resolve) => signal.addEventListener('abort', resolve))]);
    token.throwIfCancelled();
    return 'done';
  };
  return { work, started, end: () => end() };
}

test('a task runs elsewhere, survives a SIGKILL, is cancelled within milliseconds and ends once', async () => {
  await using postgres = await borrowPostgres();
  const store = createTaskStore(postgres.url);
  const from = await setUp({ store, reofferIntervalMs: 500 });
  const children = [1, 2].map(() => startChild('ticket-worker', [postgres.url, redis.url, from.queue.name]));
  const works = (child: Child): Promise<unknown> => child.hear<{ type: string }>(({ type }) => type === 'working');
  try {
    const ref = await create(from.engine);
    const first = await Promise.any(children.map((child) => works(child).then(() => child)));
    const second = children.find((child) => child !== first)!;
    await expect.poll(async () => (await store.get(ref))?.position, POLL).toBeGreaterThan(1);
    await first[Symbol.asyncDispose]();
    await works(second);
    const before = performance.now();
    expect(await store.cancel(ref, { kind: 'user', by: 'ann' }, { mode: 'now' })).toMatchObject({ result: 'accepted' });
    const fired = await second.hear<{ type: string; reason: unknown }>(({ type }) => type === 'fired');
    const cancelMs = performance.now() - before;
    expect(fired.reason).toMatchObject({ kind: 'user', by: 'ann' });
    // A busy machine is no reason to fail.
    expect(cancelMs).toBeLessThan(2_000);
    expect(await ticketIs(from.queue, ref.id, 'completed')).toMatchObject({ returnvalue: { status: 'cancelled' } });
    expect(await store.get(ref)).toMatchObject({ status: 'cancelled', crashes: 1 });
    expect(second.said.filter((said) => (said as { type: string }).type === 'working')).toHaveLength(1);
  } finally {
    for (const child of children) await child[Symbol.asyncDispose]();
    await from[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  }
});

test('a rate limit holds while tickets are lost and offered again', async () => {
  const [max, duration, count] = [2, 200, 12];
  const { work, started, end } = heldWork();
  end();
  const { engine, store, queue, ...rest } = await setUp({
    work,
    worker: { limiter: { max, duration } },
    reofferIntervalMs: 20,
  });
  const refs = await Promise.all(Array.from({ length: count }, (_, n) => create(engine, { input: n })));
  for (const { id } of refs.slice(-2)) await queue.remove(id);
  for (const ref of refs) await statusIs(store, ref, 'success');
  expect(started).toHaveLength(count);
  // Each of them ran by a ticket, and the first ticket of each window waits for the end of the window before.
  const tickets = await Promise.all(refs.map(({ id }) => ticketIs(queue, id, 'completed')));
  const times = tickets.map(({ processedOn }) => processedOn!).toSorted((one, other) => one - other);
  // One window to spare, for a machine that is so busy that a request is answered long after it was sent.
  expect(times.at(-1)! - times[0]!).toBeGreaterThan((count / max - 2) * duration);
  await rest[Symbol.asyncDispose]();
});

test('the ticket of a paused agent starts nothing until the agent is resumed', async () => {
  const { work, started, end } = heldWork();
  end();
  const { engine, store, queue, ...rest } = await setUp({ work, reofferIntervalMs: 50 });
  await store.pause({ agent: 'assistant' }, true);
  const ref = await create(engine);
  await expect.poll(async () => (await queue.getJob(ref.id))?.attemptsStarted, POLL).toBeGreaterThan(1);
  expect(started).toEqual([]);
  await store.pause({ agent: 'assistant' }, false);
  await statusIs(store, ref, 'success');
  await rest[Symbol.asyncDispose]();
});

test('a lost ticket is replaced, and keeps its priority', async () => {
  const idle = await setUp();
  const ref = await create(idle.engine, { priority: 7 });
  const { priority } = (await idle.queue.getJob(ref.id))!;
  await idle.queue.obliterate({ force: true });
  expect(await idle.queue.getJobState(ref.id)).toBe('unknown');
  expect(await idle.engine.reissueTickets()).toBe(1);
  expect(await idle.engine.reissueTickets()).toBe(0);
  expect(await idle.queue.getJob(ref.id)).toMatchObject({ priority, data: ref });
  expect(priority).toBe(93);
  await idle[Symbol.asyncDispose]();
});

test('tasks that another process created get a ticket, by the one worker that scans', async () => {
  const { work, started, end } = heldWork();
  const serving = await setUp({ work, reofferIntervalMs: 50 });
  end();
  const receipt = await serving.store.create(TASK);
  await statusIs(serving.store, { tenant: 'acme', id: 'task' in receipt ? receipt.task.id : '' }, 'success');
  expect(started).toHaveLength(1);
  await serving[Symbol.asyncDispose]();
});

test('a doubled ticket starts nothing, and a late one neither', async () => {
  const { work, started, end } = heldWork();
  const { store, queue, engine, ...rest } = await setUp({ work });
  const ref = await create(engine);
  await expect.poll(() => started, POLL).toHaveLength(1);
  await queue.add('again', ref, { jobId: 'doubled' });
  await ticketIs(queue, 'doubled', 'delayed');
  end();
  await ticketIs(queue, ref.id, 'completed');
  await (await queue.getJob('doubled'))!.promote();
  expect(await ticketIs(queue, 'doubled', 'completed')).toMatchObject({ returnvalue: { status: 'success' } });
  await queue.add('late', ref, { jobId: 'late' });
  await ticketIs(queue, 'late', 'completed');
  await queue.add('forgotten', { tenant: 'acme', id: 't-none' }, { jobId: 'forgotten' });
  expect(await ticketIs(queue, 'forgotten', 'completed')).toMatchObject({ returnvalue: { status: 'unknown' } });
  expect(started).toHaveLength(1);
  expect((await store.get(ref))?.epoch).toBe(1);
  await rest[Symbol.asyncDispose]();
});

test('a task that is cancelled before it starts never starts, and its ticket is gone', async () => {
  const idle = await setUp();
  const ref = await create(idle.engine, { notBefore: Date.now() + 3_600_000 });
  expect(await idle.queue.getJobState(ref.id)).toBe('delayed');
  expect(await idle.engine.store.cancel(ref)).toMatchObject({ result: 'accepted', status: 'cancelled' });
  expect(await idle.queue.getJobState(ref.id)).toBe('unknown');
  expect(await idle.engine.store.cancel(ref)).toMatchObject({ result: 'too-late' });
  expect(await idle.engine.reissueTickets()).toBe(0);
  await idle[Symbol.asyncDispose]();
});

test('closing puts the task and its ticket back, and another engine continues', async () => {
  const { work, started } = heldWork();
  const store = createMemoryStore();
  const first = await setUp({ store, work });
  const ref = await create(first.engine);
  await expect.poll(() => started, POLL).toHaveLength(1);
  await Promise.all([first.engine.close(), first.engine.close('now')]);
  expect(await store.get(ref)).toMatchObject({ status: 'init', attempts: 0 });
  expect(await first.queue.getJobState(ref.id)).toBe('prioritized');
  await expect(first.engine.serve(createRunner({ store, agents: {} }))).rejects.toThrow('was closed');
  // A server that drains still creates tasks.
  const later = await create(first.engine);
  expect(await first.queue.getJobState(later.id)).toBe('prioritized');
  const second = await setUp({ store, queue: first.queue, work: () => Promise.resolve('continued') });
  for (const one of [ref, later]) await statusIs(store, one, 'success');
  await second.engine.close();
  expect(first.errors).toEqual([]);
  await first[Symbol.asyncDispose]();
});

test('the next task of a conversation gets its ticket when the one before has ended', async () => {
  const { work, started, end } = heldWork();
  const { engine, store, queue, ...rest } = await setUp({ work });
  const first = await create(engine, { conversation: 'c', input: 1 });
  await expect.poll(() => started, POLL).toEqual([1]);
  const receipt = await engine.store.create({ ...TASK, conversation: 'c', input: 2 }, { policy: 'queue' });
  const second = { tenant: 'acme', id: 'task' in receipt ? receipt.task.id : '' };
  expect(await queue.getJobState(second.id)).toBe('unknown');
  end();
  await statusIs(store, first, 'success');
  await statusIs(store, second, 'success');
  await rest[Symbol.asyncDispose]();
});

test('a job of a scheduler creates its task once', async () => {
  const { work, started, end } = heldWork();
  const { store, queue, ...rest } = await setUp({ work });
  end();
  await queue.upsertJobScheduler('nightly', { every: 3_600_000 }, { name: 'assistant', data: { task: TASK } });
  await expect.poll(async () => (await store.list({ tenant: 'acme' })).tasks[0]?.status, POLL).toBe('success');
  const [job] = await expect
    .poll(() => queue.getCompleted(), POLL)
    .toHaveLength(1)
    .then(() => queue.getCompleted());
  await job!.retry('completed');
  await expect.poll(async () => (await queue.getJob(job!.id!))?.attemptsStarted, POLL).toBe(2);
  await ticketIs(queue, job!.id!, 'completed');
  expect(started).toHaveLength(1);
  expect((await store.list({ tenant: 'acme' })).tasks).toHaveLength(1);
  await rest[Symbol.asyncDispose]();
});

test('a job that is not a ticket, and a task that fails, end as failed with the reason', async () => {
  const work = (): Promise<never> => Promise.reject(new Error('no table left'));
  const { engine, queue, ...rest } = await setUp({ work });
  await queue.add('mail', { to: 'ann' }, { jobId: 'mail', attempts: 5 });
  expect((await ticketIs(queue, 'mail', 'failed')).failedReason).toContain('expected { tenant, id } or { task }');
  await queue.add('bad', { task: { tenant: '', agent: 'assistant', input: 1 } }, { jobId: 'bad', attempts: 5 });
  expect((await ticketIs(queue, 'bad', 'failed')).failedReason).toContain('tenant: expected');
  const { id } = await create(engine);
  expect((await ticketIs(queue, id, 'failed')).failedReason).toContain('no table left');
  await rest[Symbol.asyncDispose]();
});

test('tickets that the queue lost in a crash are replaced, and running tasks do not notice', async () => {
  const own = await startRedis({ appendfsync: 'none' });
  const { work, started, end } = heldWork();
  const connection = { host: '127.0.0.1', port: own.port, retryStrategy: () => 20 };
  const queue = new Queue('crashing', { connection });
  const { engine, store, errors, ...rest } = await setUp({
    queue,
    work,
    worker: { concurrency: 1 },
    reofferIntervalMs: 200,
  });
  const refs = [await create(engine), await create(engine)];
  await expect.poll(() => started, POLL).toHaveLength(1);
  await own.kill('SIGKILL');
  // Without the queue the store still works; the ticket follows.
  refs.push(await create(engine));
  await own.start();
  end();
  for (const ref of refs) await statusIs(store, ref, 'success');
  expect(started).toHaveLength(3);
  expect(errors).not.toEqual([]);
  await rest[Symbol.asyncDispose]();
  await own[Symbol.asyncDispose]();
});

test('a ticket that a worker without its agent gets waits for one that has it, and costs no attempt', async () => {
  const store = createMemoryStore();
  const idle = await setUp({ store, reofferIntervalMs: 50 });
  await idle.engine.serve(createRunner({ store: idle.engine.store, agents: {} }), { drainDelay: 1 });
  const ref = await create(idle.engine);
  await expect.poll(async () => (await idle.queue.getJob(ref.id))?.attemptsStarted, POLL).toBeGreaterThan(12);
  expect(await store.get(ref)).toMatchObject({ attempts: 0, crashes: 0 });
  await idle.engine.close();
  const able = await setUp({ store, queue: idle.queue, work: () => Promise.resolve('done') });
  await statusIs(store, ref, 'success');
  await able.engine.close();
  await idle[Symbol.asyncDispose]();
});

test('a ticket waits while the store is away', async () => {
  const { work, started, end } = heldWork();
  const inner = createMemoryStore();
  let isAway = true;
  const store = new Proxy(inner, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (name === 'get' && isAway) return () => Promise.reject(new Error('the store is away'));
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  const { engine, queue, errors, ...rest } = await setUp({ store, work, reofferIntervalMs: 200 });
  end();
  const ref = await create(engine);
  await expect.poll(() => errors.map(({ message }) => message), POLL).toContain('the store is away');
  isAway = false;
  await ticketIs(queue, ref.id, 'completed');
  expect(await inner.get(ref)).toMatchObject({ status: 'success' });
  expect(started).toHaveLength(1);
  await rest[Symbol.asyncDispose]();
});

test('an engine that could not start can be started again, and one can be closed while it starts', async () => {
  const inner = createMemoryStore();
  let isAway = true;
  const store = new Proxy(inner, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (name === 'watch' && isAway) return () => Promise.reject(new Error('the store is away'));
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  const { engine, queue, ...rest } = await setUp({ store });
  const agents = { assistant: heldWork().work };
  const runner = createRunner({ store: engine.store, agents });
  await expect(engine.serve(runner)).rejects.toThrow('the store is away');
  isAway = false;
  await engine.serve(runner);
  await expect(engine.serve(runner)).rejects.toThrow('is already serving or was closed');
  const closing = createBullmqEngine({ store, queue, agents: ['assistant'] });
  await Promise.allSettled([closing.serve(createRunner({ store: closing.store, agents })), closing.close()]);
  await closing.close();
  await rest[Symbol.asyncDispose]();
});

test('options that cannot work are rejected', async () => {
  const idle = await setUp();
  const make = (options: object) => () => createBullmqEngine(options as Parameters<typeof createBullmqEngine>[0]);
  const { store, queue } = idle;
  expect(make({ store, queue: 'tickets', agents: [] })).toThrow('queue: expected a BullMQ queue');
  expect(make({ store, queue, agents: [''] })).toThrow('agents');
  expect(make({ store, queue, agents: [], reofferIntervalMs: 0 })).toThrow('reofferIntervalMs: expected more than 0');
  await idle[Symbol.asyncDispose]();
});

/** An agent whose call of `pay` needs a yes. */
function payingWork() {
  const paid: string[] = [];
  const approvals = createTaskApprovals({ parkAfterMs: 0 });
  const pay = defineTool({
    name: 'pay',
    description: 'Pays',
    inputSchema: z.object({}),
    effects: 'write',
    execute: (_input, { callId }) => `paid ${paid.push(callId)}`,
  });
  const planner = scripted(
    () => callTools([{ id: 'c1', tool: 'pay', input: {} }]),
    () => reply('done'),
  );
  const work = createAgent({ name: 'assistant', planner, tools: [pay], approve: approvals.approve });
  return { paid, work, approvals };
}

const YES = { callId: 'c1', decision: 'yes' } as const;

test('a task that waits for a person takes no slot of BullMQ, and the answer brings its ticket back', async () => {
  const { paid, ...paying } = payingWork();
  await using fleet = await setUp({ ...paying, worker: { concurrency: 1 } });
  const { engine, store, queue } = fleet;
  const refs = [await create(engine), await create(engine)];
  for (const ref of refs) {
    await expect.poll(async () => (await store.get(ref))?.stage, POLL).toBe('parked');
    await ticketIs(queue, ref.id, 'delayed');
  }
  expect(await answerCall(engine.store, refs[0]!, YES)).toMatchObject({ result: 'accepted' });
  await statusIs(store, refs[0]!, 'success');
  expect(paid).toEqual(['c1']);
  expect(await store.get(refs[1]!)).toMatchObject({ status: 'running', waiting: 1 });
});

test('an answer that only the store learns brings the ticket back with the next scan', async () => {
  const { paid, ...paying } = payingWork();
  // The ticket itself looks again after ten times as long.
  await using fleet = await setUp({ ...paying, reofferIntervalMs: 6_000 });
  const { engine, store, queue } = fleet;
  const ref = await create(engine);
  await expect.poll(async () => (await store.get(ref))?.stage, POLL).toBe('parked');
  await ticketIs(queue, ref.id, 'delayed');
  expect(await answerCall(store, ref, YES)).toMatchObject({ result: 'accepted' });
  await statusIs(store, ref, 'success');
  expect(paid).toEqual(['c1']);
});

test('an answer counts while BullMQ has lost its tickets, and takes effect once', async () => {
  const own = await startRedis({ appendfsync: 'none' });
  const { paid, ...paying } = payingWork();
  const queue = new Queue('away', { connection: { host: '127.0.0.1', port: own.port, retryStrategy: () => 20 } });
  const { engine, store, ...rest } = await setUp({ ...paying, queue, reofferIntervalMs: 200 });
  const ref = await create(engine);
  await expect.poll(async () => (await store.get(ref))?.stage, POLL).toBe('parked');
  await own.kill('SIGKILL');
  expect(await answerCall(engine.store, ref, YES)).toMatchObject({ result: 'accepted' });
  expect(await store.get(ref)).toMatchObject({ stage: 'ready' });
  await own.start();
  await statusIs(store, ref, 'success');
  expect(paid).toEqual(['c1']);
  await rest[Symbol.asyncDispose]();
  await own[Symbol.asyncDispose]();
});

test('the ticket of a task that waits for its provider comes back at its time, and its slot is free meanwhile', async () => {
  const overloaded = new ModelError('overloaded', { isRetryable: true });
  const model = createScriptedModel([[{ fail: overloaded }], ['second'], ['first']]);
  const work = createAgent({ name: 'assistant', model, retry: { maxAttempts: 1 } });
  const waitForProvider = { maxMs: 60_000, backoffMs: 2_000 };
  await using fleet = await setUp({ work, waitForProvider, worker: { concurrency: 1 } });
  const { engine, store, queue } = fleet;
  const first = await create(engine);
  await ticketIs(queue, first.id, 'delayed');
  expect(await store.get(first)).toMatchObject({ stage: 'delayed', activity: { providerWait: { attempts: 1 } } });
  const second = await create(engine);
  await statusIs(store, second, 'success');
  expect((await store.get(second))?.outcome?.answer).toBe('second');
  await statusIs(store, first, 'success');
  expect((await store.get(first))?.outcome?.answer).toBe('first');
});
