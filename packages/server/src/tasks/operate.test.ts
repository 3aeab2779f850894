import { createMemoryStore, type TaskRecord, type TaskStore } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { ORIGIN, type Person, type Served, serve } from '../../../../test/server/served.ts';
import { createTaskClient, type TaskClient } from './client/index.ts';

function createClient(served: Served, who: Person, tenant?: string): TaskClient {
  const send = (url: string, init: RequestInit): Promise<Response> => served.api.fetch(new Request(url, init));
  const token = served.tokens[who];
  return createTaskClient({ url: ORIGIN, token, fetch: send as typeof fetch, ...(tenant && { tenant }) });
}

async function createFailed(store: TaskStore, code?: string): Promise<string> {
  const receipt = await store.create({ tenant: 'acme', agent: 'assistant', input: 'hello' });
  const { id } = (receipt as { task: { id: string } }).task;
  const claimed = await store.claim(id, { worker: 'w', session: 's', claim: id, leaseMs: 60_000 });
  if (claimed.result !== 'claimed') throw new Error(claimed.result);
  await store.finish(claimed.claim, { status: 'failed', error: { message: 'no', ...(code && { code }) } });
  return id;
}

test('an operator sees the fleet and its queues, and pauses and resumes an agent', async () => {
  const served = serve();
  const client = createClient(served, 'operator');
  for (const tenant of ['acme', 'other']) await served.store.create({ tenant, agent: 'assistant', input: 'hello' });
  expect((await client.fleet()).agents).toMatchObject([{ agent: 'assistant', ready: 2, isUnserved: true }]);
  await client.pause({ agent: 'assistant' }, true);
  expect(await client.fleet()).toMatchObject({
    agents: [{ isPaused: true, isUnserved: false }],
    paused: [{ agent: 'assistant' }],
  });
  const first = await client.queues({ limit: 1 });
  const second = await client.queues({ limit: 1, cursor: first.next! });
  expect([...first.queues, ...second.queues].map(({ tenant }) => tenant).toSorted()).toEqual(['acme', 'other']);
  expect(second.next).toBeUndefined();
  await client.pause({ agent: 'assistant' }, false);
  expect((await client.queues()).paused).toEqual([]);
  expect(served.audited).toMatchObject([
    { type: 'pause', actor: 'operator', target: 'agent assistant', result: 'paused' },
    { type: 'pause', result: 'resumed' },
  ]);
  const nonsense = [{}, { agent: 'a', tenant: 't' }, { agent: '' }];
  for (const target of nonsense) {
    expect((await served.ask('operator', 'POST /v1/pause', { target, paused: true })).status).toBe(400);
  }
  expect((await served.ask('operator', 'GET /v1/queues?cursor=x')).status).toBe(400);
});

test('a halt of all stops every tenant, and needs both rights', async () => {
  const served = serve();
  const ids = ['acme', 'other'].map((tenant) => served.store.create({ tenant, agent: 'assistant', input: 'hello' }));
  await Promise.all(ids);
  const target = { all: true } as const;
  for (const who of ['onCall', 'halter', 'ann'] as const)
    expect((await served.ask(who, 'POST /v1/halt', { target })).status, who).toBe(403);
  expect((await served.store.queues()).paused).toEqual([]);
  expect(served.audited).toEqual([]);
  const receipt = await createClient(served, 'operator').halt(target, { reason: 'fire' });
  expect(receipt).toMatchObject({ target, isQuiet: true, stopped: 2, left: 0, running: [], waiting: 0, others: 0 });
  const [task] = (await served.store.list({ tenant: 'other' })).tasks;
  expect(task).toMatchObject({
    status: 'cancelled',
    outcome: { reason: { by: 'operator', via: 'halt', message: 'fire' } },
  });
  expect((await served.store.queues()).paused).toEqual([target]);
  expect(served.audited).toMatchObject([{ type: 'halt', actor: 'operator', target: 'all', result: 'halted' }]);
  for (const wrong of [{}, { all: false }, { all: true, tenant: 'acme' }])
    expect((await served.ask('operator', 'POST /v1/halt', { target: wrong })).status).toBe(400);
});

test('a failed task is requeued by its tenant or an operator, once', async () => {
  const served = serve();
  const id = await createFailed(served.store);
  const requeued = await createClient(served, 'ann').requeue(id);
  expect(requeued).toMatchObject({ result: 'requeued', task: { inputs: ['hello'], status: 'init' } });
  expect(await createClient(served, 'operator', 'acme').requeue(id)).toMatchObject({ result: 'unchanged' });
  expect(await createClient(served, 'bob').requeue(id)).toEqual({ result: 'not-found' });
  const { id: fresh } = (requeued as { task: { id: string } }).task;
  expect(await createClient(served, 'ann').requeue(fresh)).toMatchObject({ result: 'not-failed', status: 'init' });
  expect(served.audited.map(({ result }) => result)).toEqual(['requeued', 'unchanged', 'not-found', 'not-failed']);
});

test('poison tasks are listed apart', async () => {
  const served = serve();
  const client = createClient(served, 'ann');
  await createFailed(served.store);
  const id = await createFailed(served.store, 'WORKERS_LOST');
  expect((await client.list({ poison: true })).tasks.map((task) => task.id)).toEqual([id]);
  expect((await client.list()).tasks).toHaveLength(2);
});

test('an operator lists and counts the tasks of all tenants, page by page; others do not', async () => {
  const served = serve({ store: createMemoryStore() });
  const created: string[] = [];
  for (const tenant of ['acme', 'other', 'third', 'acme', 'other']) {
    const receipt = await served.store.create({ tenant, agent: 'assistant', input: 'hello' });
    created.push((receipt as { task: TaskRecord }).task.id);
  }
  const everyone = createClient(served, 'operator', '*');
  expect(await everyone.counts()).toMatchObject({ tenant: '*', statuses: { init: 5, running: 0 } });
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await everyone.list({ limit: 2, ...(cursor && { cursor }) });
    seen.push(...page.tasks.map(({ id }) => id));
    cursor = page.next;
  } while (cursor !== undefined);
  expect(seen.toSorted()).toEqual(created.toSorted());
  await expect(createClient(served, 'ann', '*').list()).rejects.toMatchObject({ status: 403 });
  for (let index = 0; index < 50; index++) {
    await served.store.create({ tenant: `t${index}`, agent: 'assistant', input: 'hello' });
  }
  await expect(everyone.list()).rejects.toMatchObject({ status: 400, code: 'too-many-tenants' });
});

test('an operator erases a conversation, then a tenant, and gets receipts', async () => {
  const served = serve({ store: createMemoryStore() });
  const client = createClient(served, 'operator');
  for (const conversation of ['a', 'b']) {
    await served.store.create({ tenant: 'acme', agent: 'assistant', input: 'hello', conversation });
  }
  await served.store.create({ tenant: 'other', agent: 'assistant', input: 'hello' });
  expect(await client.erase({ tenant: 'acme', conversation: 'a' })).toMatchObject({
    conversation: 'a',
    cancelled: 1,
    tasks: 1,
    conversations: 1,
    isComplete: true,
  });
  expect(await client.erase({ tenant: 'acme' }, { waitMs: 0 })).toMatchObject({ tasks: 1, isComplete: true });
  expect(await client.tenants()).toEqual({ tenants: ['other'] });
  expect(served.audited).toMatchObject([
    { type: 'erase', tenant: 'acme', target: 'a', result: 'erased' },
    { type: 'erase', target: '*' },
  ]);
});
