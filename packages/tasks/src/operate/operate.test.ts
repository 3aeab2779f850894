import { createVirtualWorld } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { createMemoryStore } from '../ledger/memory.ts';
import { LIMITS } from '../ledger/rules/rules.ts';
import type { TaskStore } from '../store.ts';
import { bring, claim, create, expire, TENANT, tryClaim } from '../testing/case.ts';
import { cancelTasks } from './cancel-tasks.ts';
import { eraseRecords } from './erase.ts';
import { readFleetLoad } from './fleet.ts';
import { listPoisonTasks, requeueTask } from './requeue.ts';

test('live tasks are cancelled in batches, waiting ones first, and a dry run cancels none', async () => {
  await using store = createMemoryStore();
  for (let i = 0; i < 3; i++) await create(store);
  await create(store, { agent: 'writer' });
  const { by } = await claim(store, (await create(store)).id);
  await create(store, { tenant: 'other' });
  const cancelAll = async (dryRun: boolean): Promise<string[]> => {
    const answers: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await cancelTasks(store, { tenant: TENANT, agent: 'assistant', limit: 2, dryRun, cursor });
      answers.push(...page.tasks.map(({ status, result }) => `${status} ${result}`));
      cursor = page.next;
      if (cursor === undefined) return answers;
    }
  };
  const waiting = (answer: string): string[] => Array.from({ length: 3 }, () => `init ${answer}`);
  expect(await cancelAll(true)).toEqual([...waiting('would-cancel'), 'running would-cancel']);
  expect((await cancelAll(false)).slice(0, 4)).toEqual([...waiting('accepted'), 'running accepted']);
  expect((await store.counts({ tenant: TENANT })).statuses).toMatchObject({ init: 1, cancelling: 1, cancelled: 3 });
  expect((await store.counts({ tenant: 'other' })).statuses.init).toBe(1);
  await store.finish(by, { status: 'cancelled' });
});

test('a failed task is requeued once, with its input and in its conversation', async () => {
  await using store = createMemoryStore();
  const old = await create(store, { conversation: 'c', input: { text: 'hi' }, priority: 3 });
  expect(await requeueTask(store, { tenant: TENANT, id: old.id })).toEqual({ result: 'not-failed', status: 'init' });
  const { by } = await claim(store, old.id);
  await store.finish(by, { status: 'failed', error: { message: 'no' } });
  const requeued = await requeueTask(store, { tenant: TENANT, id: old.id });
  expect(requeued).toMatchObject({
    result: 'requeued',
    task: { inputs: [{ text: 'hi' }], conversation: 'c', priority: 3, status: 'init' },
  });
  const again = await requeueTask(store, { tenant: TENANT, id: old.id });
  expect(again).toMatchObject({ result: 'unchanged', task: { id: (requeued as { task: { id: string } }).task.id } });
  expect(await requeueTask(store, { tenant: 'other', id: old.id })).toEqual({ result: 'not-found' });
  expect((await store.get({ tenant: TENANT, id: old.id }))?.status).toBe('failed');
  const { id } = await bring(store, 'success');
  expect(await requeueTask(store, { tenant: TENANT, id })).toEqual({ result: 'not-failed', status: 'success' });
});

test('a task whose requeued copy failed too is requeued again, and one that was cancelled is not', async () => {
  await using store = createMemoryStore();
  const ref = (await bring(store, 'failed')).ref;
  const ids = [ref.id];
  for (let i = 0; i < 3; i++) {
    const receipt = await requeueTask(store, ref);
    if (receipt.result !== 'requeued') throw new Error(`it was not requeued: ${receipt.result}`);
    expect(await requeueTask(store, ref)).toMatchObject({ result: 'unchanged', task: { id: receipt.task.id } });
    ids.push(receipt.task.id);
    if (i < 2) await store.finish((await claim(store, receipt.task.id)).by, { status: 'failed' });
  }
  expect(new Set(ids).size).toBe(4);
  await store.cancel({ tenant: TENANT, id: ids[3]! });
  expect(await requeueTask(store, ref)).toMatchObject({ result: 'unchanged', task: { status: 'cancelled' } });
});

test('gathered messages are requeued together if they are text', async () => {
  const world = createVirtualWorld();
  await using store = createMemoryStore({ world });
  for (const inputs of [
    ['a', 'b'],
    ['a', 1],
  ] as const) {
    const conversation = `${inputs.length} ${inputs[1]}`;
    let id = '';
    for (const input of inputs) ({ id } = await create(store, { conversation, input, debounceMs: 10 }));
    await world.clock.advance(20);
    const { by } = await claim(store, id);
    await store.finish(by, { status: 'failed' });
    const receipt = await requeueTask(store, { tenant: TENANT, id });
    if (inputs[1] === 'b') expect(receipt).toMatchObject({ result: 'requeued', task: { inputs: ['a\n\nb'] } });
    else expect(receipt).toEqual({ result: 'merged-inputs' });
  }
});

test('tasks whose workers crashed again and again are listed as poison', async () => {
  const world = createVirtualWorld();
  await using store = createMemoryStore({ world, maxAttempts: 1 });
  await bring(store, 'failed');
  const { id } = await create(store);
  const advance = (ms: number): Promise<void> => world.clock.advance(ms);
  for (let i = 0; i < 3; i++) {
    await claim(store, id, { leaseMs: 1_000 });
    await expire({ store, advance }, 1_000);
    await advance(LIMITS.maxCrashBackoffMs);
  }
  expect((await tryClaim(store, id)).result).toBe('too-late');
  const { tasks } = await listPoisonTasks(store, { tenant: TENANT });
  expect(tasks.map((task) => task.id)).toEqual([id]);
});

test('a fleet is summarised by agent, and an agent without workers is named', async () => {
  const world = createVirtualWorld();
  await using store = createMemoryStore({ world });
  await create(store);
  await create(store, { tenant: 'other' });
  await world.clock.advance(500);
  await claim(store, (await create(store, { agent: 'writer' })).id);
  await create(store, { agent: 'writer' });
  await create(store, { agent: 'paused' });
  await store.pause({ agent: 'paused' }, true);
  const asked = { session: 's', claim: 'c', takeNumber: 1, worker: 'w', leaseMs: 1_000, limit: 1 };
  await store.take({ ...asked, agents: ['idle'] });
  const { agents, paused, unsettled, hasMore } = await readFleetLoad(store);
  const base = { ready: 0, running: 0, oldestWaitMs: 0, waiting: 0, isPaused: false, isUnserved: false };
  expect(agents).toEqual([
    { ...base, agent: 'assistant', ready: 2, oldestWaitMs: 500, isUnserved: true },
    { ...base, agent: 'idle', waiting: 1 },
    { ...base, agent: 'paused', ready: 1, isPaused: true },
    { ...base, agent: 'writer', ready: 1, running: 1 },
  ]);
  expect({ paused, unsettled, hasMore }).toEqual({
    paused: [{ agent: 'paused' }],
    unsettled: 0,
    hasMore: false,
  });
});

test('a fleet with many queues is read in small pages', async () => {
  await using store = createMemoryStore();
  for (let i = 0; i < 250; i++) await create(store, { tenant: `t${i}` });
  const pages: number[] = [];
  const queues: TaskStore['queues'] = async (request) => {
    const page = await store.queues(request);
    pages.push(page.queues.length);
    return page;
  };
  const { agents, hasMore } = await readFleetLoad({ queues, workers: () => store.workers() });
  expect({ pages, ready: agents[0]!.ready, hasMore }).toEqual({
    pages: [50, 50, 50, 50, 50],
    ready: 250,
    hasMore: false,
  });
});

test('everything of a tenant is erased: what runs is cancelled and waited for', async () => {
  const world = createVirtualWorld();
  await using store = createMemoryStore({ world });
  for (const status of ['init', 'success', 'failed'] as const) await bring(store, status);
  const talked = await claim(store, (await create(store, { conversation: 'c' })).id);
  await store.finish(talked.by, { status: 'success', newMessages: ['hello'] });
  const { by } = await claim(store, (await create(store, { conversation: 'd' })).id);
  await create(store, { tenant: 'other', conversation: 'c' });
  const erasing = eraseRecords(store, { tenant: TENANT }, { world, by: 'ada' });
  while ((await store.get({ tenant: TENANT, id: by.id }))?.status !== 'cancelling') await Promise.resolve();
  expect((await store.get({ tenant: TENANT, id: by.id }))?.stop?.reason).toMatchObject({ by: 'ada' });
  await store.finish(by, { status: 'cancelled' });
  await world.clock.advance(1_000);
  const receipt = await erasing;
  expect(receipt).toMatchObject({
    tenant: TENANT,
    cancelled: 2,
    tasks: 5,
    conversations: 2,
    live: [],
    isComplete: true,
  });
  expect(await store.tenants()).toEqual({ tenants: ['other'] });
  expect((await store.conversations({ tenant: 'other' })).conversations).toEqual(['c']);
  const again = await eraseRecords(store, { tenant: TENANT }, { world });
  expect(again).toMatchObject({ tasks: 0, conversations: 0, isComplete: true });
});

test.for([1, 2, 3, 4, 5])('a task that ends after reading %i of an erasure is removed too', async (reading) => {
  const world = createVirtualWorld();
  await using store = createMemoryStore({ world });
  const { by } = await claim(store, (await create(store)).id);
  const list = store.list.bind(store);
  let readings = 0;
  store.list = async (request) => {
    const page = await list(request);
    if (++readings === reading) await store.finish(by, { status: 'cancelled' });
    return page;
  };
  const erasing = eraseRecords(store, { tenant: TENANT }, { world });
  await world.clock.advance(1_000);
  expect(await erasing).toMatchObject({ tasks: 1, live: [], isComplete: true });
});

test('one conversation is erased, and the others stay', async () => {
  await using store = createMemoryStore();
  for (const conversation of ['a', 'b']) {
    const { by } = await claim(store, (await create(store, { conversation })).id);
    await store.finish(by, { status: 'success', newMessages: ['hello'] });
  }
  const receipt = await eraseRecords(store, { tenant: TENANT, conversation: 'a' });
  expect(receipt).toMatchObject({ conversation: 'a', tasks: 1, conversations: 1, isComplete: true });
  expect((await store.conversations({ tenant: TENANT })).conversations).toEqual(['b']);
  expect((await store.list({ tenant: TENANT })).tasks.map((task) => task.conversation)).toEqual(['b']);
});

test('a task that does not end is named in the receipt, and a stopped erasure reports it', async () => {
  const world = createVirtualWorld();
  await using store = createMemoryStore({ world });
  const { by } = await claim(store, (await create(store)).id);
  const erasing = eraseRecords(store, { tenant: TENANT }, { world, waitMs: 400 });
  while ((await store.get({ tenant: TENANT, id: by.id }))?.status !== 'cancelling') await Promise.resolve();
  await world.clock.advance(2_000);
  expect(await erasing).toMatchObject({ live: [by.id], isComplete: false });
  const signal = AbortSignal.abort();
  expect(await eraseRecords(store, { tenant: TENANT }, { world, signal })).toMatchObject({ isComplete: false });
});
