// BullMQ delivers tasks, on a real Redis: the queue decides when, the store decides what.
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
  StoreBusyError,
  type TaskHandler,
  type TaskStore,
} from '@whoa/tasks';
import { Queue } from 'bullmq';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { type BorrowedServer, borrowPostgres, borrowRedis } from '../servers/borrow.ts';
import { ask, startRedis } from '../servers/redis.ts';
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
  readonly order?: 'tenants' | 'jobs';
  readonly work?: TaskHandler;
  readonly worker?: Parameters<BullmqEngine['serve']>[1];
  readonly approvals?: ReturnType<typeof createTaskApprovals>;
  readonly waitForProvider?: RunnerOptions['waitForProvider'];
}

/** An engine that serves a function, unless there is none. */
async function setUp({ work, worker, order, ...given }: SetUp = {}) {
  const { approvals, waitForProvider } = given;
  const store = given.store ?? createMemoryStore();
  const connection = { host: '127.0.0.1', port: redis.port };
  const queue = given.queue ?? new Queue(`offers-${queues++}`, { connection });
  const errors: Error[] = [];
  queue.on('error', (error) => errors.push(error));
  const engine = createBullmqEngine({ store, queue, agents: ['assistant'], order });
  if (work) {
    const options = { ...(approvals && { approvals }), ...(waitForProvider && { waitForProvider }) };
    const runner = createRunner({ store, agents: { assistant: work }, ...options });
    await engine.serve(runner, { drainDelay: 1, ...worker });
  } else await engine.start();
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

async function create(store: TaskStore, task: object = {}): Promise<{ tenant: string; id: string }> {
  const receipt = await store.create({ ...TASK, ...task });
  if (!('task' in receipt)) throw new Error(receipt.result);
  return { tenant: receipt.task.tenant, id: receipt.task.id };
}

const POLL = { timeout: 30_000, interval: 10 };

async function statusIs(store: TaskStore, ref: { tenant: string; id: string }, status: string): Promise<void> {
  await expect.poll(async () => (await store.get(ref))?.status, POLL).toBe(status);
}

/** Nothing waits and nothing is handed out. */
async function isEmpty(queue: Queue): Promise<void> {
  const none = { active: 0, delayed: 0, prioritized: 0, wait: 0 };
  await expect.poll(() => queue.getJobCounts('active', 'delayed', 'prioritized', 'wait'), POLL).toEqual(none);
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

const ORDERS = ['tenants', 'jobs'] as const;

test('a task runs elsewhere, survives a SIGKILL, is cancelled within milliseconds and ends once', async () => {
  await using postgres = await borrowPostgres();
  const store = createTaskStore(postgres.url);
  const from = await setUp({ store });
  const children = [1, 2].map(() => startChild('engine-worker', [postgres.url, redis.url, from.queue.name]));
  const works = (child: Child): Promise<unknown> => child.hear<{ type: string }>(({ type }) => type === 'working');
  try {
    const ref = await create(store);
    const first = await Promise.any(children.map((child) => works(child).then(() => child)));
    const second = children.find((child) => child !== first)!;
    await expect.poll(async () => (await store.get(ref))?.position, POLL).toBeGreaterThan(1);
    // Its job ended when the task was claimed.
    await isEmpty(from.queue);
    await first[Symbol.asyncDispose]();
    await works(second);
    const before = performance.now();
    expect(await store.cancel(ref, { kind: 'user', by: 'ann' }, { mode: 'now' })).toMatchObject({ result: 'accepted' });
    const fired = await second.hear<{ type: string; reason: unknown }>(({ type }) => type === 'fired');
    const cancelMs = performance.now() - before;
    expect(fired.reason).toMatchObject({ kind: 'user', by: 'ann' });
    // A busy machine is no reason to fail.
    expect(cancelMs).toBeLessThan(2_000);
    await statusIs(store, ref, 'cancelled');
    expect(await store.get(ref)).toMatchObject({ crashes: 1 });
    expect(second.said.filter((said) => (said as { type: string }).type === 'working')).toHaveLength(1);
  } finally {
    for (const child of children) await child[Symbol.asyncDispose]();
    await from[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  }
});

test.each(ORDERS)(
  'with the order %s every task starts once, and jobs end when their tasks were claimed',
  async (order) => {
    const { work, started, end } = heldWork();
    await using serving = await setUp({ work, order, worker: { concurrency: 50 } });
    const { store, queue } = serving;
    const refs = await Promise.all(
      Array.from({ length: 40 }, (_, n) => create(store, { input: n, tenant: `t${n % 3}` })),
    );
    await expect.poll(() => started.length, POLL).toBe(40);
    await isEmpty(queue);
    end();
    for (const ref of refs) await statusIs(store, ref, 'success');
    expect(new Set(started).size).toBe(40);
    for (const ref of refs) expect((await store.get(ref))?.epoch).toBe(1);
  },
);

test('a worker that is full leaves what waits to others', async () => {
  const [one, other] = [heldWork(), heldWork()];
  const store = createMemoryStore();
  await using first = await setUp({ store, work: one.work, worker: { concurrency: 2 } });
  const refs = [];
  for (let n = 0; n < 6; n++) refs.push(await create(store, { input: n }));
  await expect.poll(() => one.started.length, POLL).toBe(2);
  await using second = await setUp({ store, queue: first.queue, work: other.work, worker: { concurrency: 4 } });
  await expect.poll(() => other.started.length, POLL).toBe(4);
  expect(one.started).toHaveLength(2);
  one.end();
  other.end();
  for (const ref of refs) await statusIs(store, ref, 'success');
  await second.engine.close();
});

test('tenants take turns, however many tasks one of them has', async () => {
  const order: string[] = [];
  const store = createMemoryStore();
  await using idle = await setUp({ store });
  for (let n = 0; n < 200; n++) await create(store, { tenant: 'large' });
  for (let n = 0; n < 5; n++) await create(store, { tenant: `small-${n}` });
  const work: TaskHandler = ({ task }) => Promise.resolve(String(order.push(task.tenant)));
  await using serving = await setUp({ store, queue: idle.queue, work, worker: { concurrency: 1 } });
  await expect.poll(() => order.length, POLL).toBe(205);
  // At most 16 jobs of the large one waited before theirs.
  const small = order.flatMap((tenant, index) => (tenant === 'large' ? [] : [index]));
  expect(Math.max(...small)).toBeLessThan(30);
  expect(serving.errors).toEqual([]);
});

test('a rate limit holds', async () => {
  const [max, duration, count] = [2, 200, 12];
  const { work, started, end } = heldWork();
  end();
  await using serving = await setUp({ work, worker: { limiter: { max, duration } } });
  const { store } = serving;
  const refs = await Promise.all(Array.from({ length: count }, (_, n) => create(store, { input: n })));
  for (const ref of refs) await statusIs(store, ref, 'success');
  expect(started).toHaveLength(count);
  const times = await Promise.all(refs.map(async (ref) => (await store.get(ref))!.startedAt!));
  // One window to spare, for a machine that is so busy that a request is answered long after it was sent.
  expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan((count / max - 2) * duration);
});

test.each(ORDERS)('with the order %s nothing of a paused agent starts until it is resumed', async (order) => {
  const { work, started, end } = heldWork();
  end();
  await using serving = await setUp({ work, order });
  const { store, queue } = serving;
  await store.pause({ agent: 'assistant' }, true);
  const refs = [await create(store), await create(store)];
  await isEmpty(queue);
  expect(started).toEqual([]);
  await store.pause({ agent: 'assistant' }, false);
  for (const ref of refs) await statusIs(store, ref, 'success');
});

test('with the order jobs a higher priority starts first, and a delayed task is a delayed job', async () => {
  const store = createMemoryStore();
  await using idle = await setUp({ store, order: 'jobs' });
  for (const priority of [-5, 0, 7]) await create(store, { priority, input: priority });
  const later = await create(store, { notBefore: Date.now() + 3_600_000 });
  await expect.poll(() => idle.queue.getJobState(later.id), POLL).toBe('delayed');
  const { work, started, end } = heldWork();
  end();
  await using serving = await setUp({ store, order: 'jobs', queue: idle.queue, work, worker: { concurrency: 1 } });
  await expect.poll(() => started, POLL).toEqual([7, 0, -5]);
  expect(await idle.queue.getJobState(later.id)).toBe('delayed');
  expect((await store.get(later))?.status).toBe('init');
  await serving.engine.close();
});

test('what another process created without the engine is found, and what waited before it started', async () => {
  const { work, started, end } = heldWork();
  end();
  const store = createMemoryStore();
  const before = await create(store);
  await using serving = await setUp({ store, work });
  await statusIs(store, before, 'success');
  await serving.engine.close();
  expect(started).toHaveLength(1);
});

test('doubled, late and unknown jobs start nothing', async () => {
  const { work, started, end } = heldWork();
  await using serving = await setUp({ work });
  const { store, queue } = serving;
  const { id } = await create(store);
  await expect.poll(() => started, POLL).toHaveLength(1);
  const data = { agent: 'assistant', tenant: 'acme' };
  for (const extra of [{}, { id }, { id: 't-none' }, { tenant: 'nobody' }])
    await queue.add('again', { ...data, ...extra }, { removeOnComplete: true });
  await isEmpty(queue);
  end();
  await statusIs(store, { tenant: 'acme', id }, 'success');
  await queue.add('late', { ...data, id }, { removeOnComplete: true });
  await isEmpty(queue);
  expect(started).toHaveLength(1);
  expect((await store.get({ tenant: 'acme', id }))?.epoch).toBe(1);
});

test('a task that is cancelled before it starts never starts', async () => {
  const { work, started } = heldWork();
  const store = createMemoryStore();
  await using idle = await setUp({ store });
  const ref = await create(store);
  expect(await store.cancel(ref)).toMatchObject({ result: 'accepted', status: 'cancelled' });
  await using serving = await setUp({ store, queue: idle.queue, work });
  await isEmpty(serving.queue);
  expect(started).toEqual([]);
});

test('a task that is being stopped is settled while the queue is paused', async () => {
  const { work, started } = heldWork();
  const store = createMemoryStore();
  await using serving = await setUp({ store, work });
  const ref = await create(store);
  await expect.poll(() => started, POLL).toHaveLength(1);
  await serving.queue.pause();
  const request = { session: 's2', claim: 'c2', worker: 'w2', leaseMs: 60_000 };
  await serving.engine.close('now');
  const claimed = await store.claim(ref.id, request);
  expect(claimed.result).toBe('claimed');
  await store.cancel(ref);
  await store.release((claimed as { claim: Parameters<TaskStore['release']>[0] }).claim);
  await using other = await setUp({ store, queue: serving.queue, work });
  await statusIs(store, ref, 'cancelled');
  expect(started).toHaveLength(1);
  await other.queue.resume();
});

test.each(ORDERS)('with the order %s closing puts tasks back, and another engine continues', async (order) => {
  const { work, started } = heldWork();
  const store = createMemoryStore();
  const first = await setUp({ store, work, order, worker: { concurrency: 1 } });
  const refs = [await create(store), await create(store)];
  await expect.poll(() => started, POLL).toHaveLength(1);
  await Promise.all([first.engine.close(), first.engine.close('now')]);
  for (const ref of refs) expect(await store.get(ref)).toMatchObject({ status: 'init', attempts: 0 });
  await expect(first.engine.serve(createRunner({ store, agents: {} }))).rejects.toThrow('was closed');
  // A server that drains still creates tasks.
  refs.push(await create(store));
  const second = await setUp({ store, order, queue: first.queue, work: () => Promise.resolve('continued') });
  for (const ref of refs) await statusIs(store, ref, 'success');
  await second.engine.close();
  expect(first.errors).toEqual([]);
  await first[Symbol.asyncDispose]();
});

test('the next task of a conversation is offered when the one before has ended', async () => {
  const { work, started, end } = heldWork();
  await using serving = await setUp({ work });
  const { store, queue } = serving;
  const first = await create(store, { conversation: 'c', input: 1 });
  await expect.poll(() => started, POLL).toEqual([1]);
  const receipt = await store.create({ ...TASK, conversation: 'c', input: 2 }, { policy: 'queue' });
  const second = { tenant: 'acme', id: 'task' in receipt ? receipt.task.id : '' };
  await isEmpty(queue);
  expect(started).toEqual([1]);
  end();
  await statusIs(store, first, 'success');
  await statusIs(store, second, 'success');
});

test('a job of a scheduler creates its task once', async () => {
  const { work, started, end } = heldWork();
  await using serving = await setUp({ work });
  const { store, queue } = serving;
  end();
  const template = { name: 'assistant', data: { task: TASK }, opts: { removeOnComplete: false } };
  await queue.upsertJobScheduler('nightly', { every: 3_600_000 }, template);
  await expect.poll(async () => (await store.list({ tenant: 'acme' })).tasks[0]?.status, POLL).toBe('success');
  await expect.poll(() => queue.getCompleted(), POLL).toHaveLength(1);
  const [job] = await queue.getCompleted();
  await job!.retry('completed');
  await expect.poll(async () => (await queue.getJob(job!.id!))?.attemptsStarted, POLL).toBe(2);
  await expect.poll(() => queue.getCompleted(), POLL).toHaveLength(1);
  expect(started).toHaveLength(1);
  expect((await store.list({ tenant: 'acme' })).tasks).toHaveLength(1);
});

test('a job that is none of ours fails with the reason', async () => {
  await using serving = await setUp({ work: () => Promise.resolve('done') });
  const { queue } = serving;
  const failed = async (jobId: string): Promise<string> => {
    await expect.poll(() => queue.getJobState(jobId), POLL).toBe('failed');
    return (await queue.getJob(jobId))!.failedReason;
  };
  await queue.add('mail', { to: 'ann' }, { jobId: 'mail', attempts: 5 });
  expect(await failed('mail')).toContain('expected { task }');
  await queue.add('bad', { task: { tenant: '', agent: 'assistant', input: 1 } }, { jobId: 'bad', attempts: 5 });
  expect(await failed('bad')).toContain('tenant: expected');
});

test.each(['killed', 'emptied'])(
  'jobs that Redis lost when it was %s are replaced, and running tasks do not notice',
  async (how) => {
    const own = await startRedis({ appendfsync: 'none' });
    const { work, started, end } = heldWork();
    const connection = { host: '127.0.0.1', port: own.port, retryStrategy: () => 20 };
    const queue = new Queue('crashing', { connection });
    const { store, ...rest } = await setUp({ queue, work, worker: { concurrency: 1 } });
    const refs = [await create(store), await create(store)];
    await expect.poll(() => started, POLL).toHaveLength(1);
    await expect.poll(() => queue.getJobCountByTypes('wait'), POLL).toBeGreaterThan(0);
    if (how === 'killed') {
      await own.kill('SIGKILL');
      // Without the queue the store still works; the offer follows.
      refs.push(await create(store));
      await own.start();
    } else await ask(own.port, 'FLUSHALL');
    end();
    for (const ref of refs) await statusIs(store, ref, 'success');
    expect(started).toHaveLength(refs.length);
    await rest[Symbol.asyncDispose]();
    await own[Symbol.asyncDispose]();
  },
);

test('a job that a worker without its agent gets waits for one that has it, and costs no attempt', async () => {
  const store = createMemoryStore();
  await using idle = await setUp({ store });
  await idle.engine.serve(createRunner({ store, agents: {} }), { drainDelay: 1 });
  const ref = await create(store);
  await expect.poll(() => idle.queue.getJobCountByTypes('delayed'), POLL).toBe(1);
  expect(await store.get(ref)).toMatchObject({ attempts: 0, crashes: 0, status: 'init' });
  await using able = await setUp({ store, queue: idle.queue, work: () => Promise.resolve('done') });
  await statusIs(store, ref, 'success');
  await able.engine.close();
});

test('a job waits while the store is away', async () => {
  const { work, started, end } = heldWork();
  const inner = createMemoryStore();
  let isAway = false;
  const store = new Proxy(inner, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (name === 'take' && isAway) return () => Promise.reject(new StoreBusyError('the store is away'));
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  await using serving = await setUp({ store, work });
  end();
  isAway = true;
  const ref = await create(store);
  await expect.poll(() => serving.queue.getActiveCount(), POLL).toBe(1);
  expect(started).toEqual([]);
  isAway = false;
  await statusIs(inner, ref, 'success');
  await isEmpty(serving.queue);
  expect(started).toHaveLength(1);
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
  const queue = new Queue(`offers-${queues++}`, { connection: { host: '127.0.0.1', port: redis.port } });
  const engine = createBullmqEngine({ store, queue, agents: ['assistant'] });
  const agents = { assistant: heldWork().work };
  const runner = createRunner({ store, agents });
  await expect(engine.serve(runner)).rejects.toThrow('the store is away');
  isAway = false;
  await engine.serve(runner);
  await expect(engine.serve(runner)).rejects.toThrow('is already serving or was closed');
  const closing = createBullmqEngine({ store, queue, agents: ['assistant'] });
  await Promise.allSettled([closing.serve(createRunner({ store, agents })), closing.close()]);
  await closing[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  await queue.close();
});

test('another queue cannot deliver the same agent until the first gives it back', async () => {
  const store = createMemoryStore();
  await using first = await setUp({ store });
  await expect(setUp({ store })).rejects.toThrow("'assistant' is delivered by another engine, 'bullmq bull:");
  expect((await store.setEngine('assistant', undefined)).result).toBe('set');
  await using second = await setUp({ store });
  expect(second.queue.name).not.toBe(first.queue.name);
});

test('options that cannot work are rejected', async () => {
  await using idle = await setUp();
  const make = (options: object) => () => createBullmqEngine(options as Parameters<typeof createBullmqEngine>[0]);
  const { store, queue } = idle;
  expect(make({ store, queue: 'tickets', agents: [] })).toThrow('queue: expected a BullMQ queue');
  expect(make({ store, queue, agents: [''] })).toThrow('agents');
  expect(make({ store, queue, agents: [], order: 'fifo' })).toThrow('order');
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

test('a task that waits for a person takes no slot, and the answer of any process brings it back', async () => {
  const { paid, ...paying } = payingWork();
  await using fleet = await setUp({ ...paying, worker: { concurrency: 1 } });
  const { store, queue } = fleet;
  const refs = [await create(store), await create(store)];
  for (const ref of refs) await expect.poll(async () => (await store.get(ref))?.stage, POLL).toBe('parked');
  await isEmpty(queue);
  expect(await answerCall(store, refs[0]!, YES)).toMatchObject({ result: 'accepted' });
  await statusIs(store, refs[0]!, 'success');
  expect(paid).toEqual(['c1']);
  expect(await store.get(refs[1]!)).toMatchObject({ status: 'running', waiting: 1 });
});

test('an answer counts while Redis is away, and takes effect once', async () => {
  const own = await startRedis({ appendfsync: 'none' });
  const { paid, ...paying } = payingWork();
  const queue = new Queue('away', { connection: { host: '127.0.0.1', port: own.port, retryStrategy: () => 20 } });
  const { store, ...rest } = await setUp({ ...paying, queue });
  const ref = await create(store);
  await expect.poll(async () => (await store.get(ref))?.stage, POLL).toBe('parked');
  await own.kill('SIGKILL');
  expect(await answerCall(store, ref, YES)).toMatchObject({ result: 'accepted' });
  expect(await store.get(ref)).toMatchObject({ stage: 'ready' });
  await own.start();
  await statusIs(store, ref, 'success');
  expect(paid).toEqual(['c1']);
  await rest[Symbol.asyncDispose]();
  await own[Symbol.asyncDispose]();
});

test('a task that waits for its provider comes back at its time, and its slot is free meanwhile', async () => {
  const overloaded = new ModelError('overloaded', { isRetryable: true });
  const model = createScriptedModel([[{ fail: overloaded }], ['second'], ['first']]);
  const work = createAgent({ name: 'assistant', model, retry: { maxAttempts: 1 } });
  const waitForProvider = { maxMs: 60_000, backoffMs: 2_000 };
  await using fleet = await setUp({ work, waitForProvider, worker: { concurrency: 1 } });
  const { store } = fleet;
  const first = await create(store);
  await expect.poll(async () => (await store.get(first))?.stage, POLL).toBe('delayed');
  expect(await store.get(first)).toMatchObject({ activity: { providerWait: { attempts: 1 } } });
  const second = await create(store);
  await statusIs(store, second, 'success');
  expect((await store.get(second))?.outcome?.answer).toBe('second');
  await statusIs(store, first, 'success');
  expect((await store.get(first))?.outcome?.answer).toBe('first');
});
