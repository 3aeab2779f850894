import { fileURLToPath } from 'node:url';
import { createMemoryStore, type FollowEvent, followTask, type TaskStore } from '@whoa/tasks';
import { buildSync } from 'esbuild';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ORIGIN, type Person, type Served, serve } from '../../../../../test/server/served.ts';
import { createTaskClient, TaskApiError, type TaskClient } from './index.ts';

const REF = { worker: 'w', session: 's', claim: 'c', leaseMs: 60_000 };

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** A client whose requests go through `around`. */
function createClient(
  served: Served,
  who: Person = 'ann',
  around: (fetch: Fetch) => Fetch = (fetch) => fetch,
): TaskClient {
  const inner: Fetch = (url, init) => served.api.fetch(new Request(url, init));
  return createTaskClient({ url: `${ORIGIN}/`, token: served.tokens[who], fetch: around(inner) as typeof fetch });
}

/** A finished task with a journal. */
async function createRun(store: TaskStore, entries: number) {
  const receipt = await store.create({ tenant: 'acme', agent: 'assistant', input: 'hello' });
  const { id } = (receipt as { task: { id: string } }).task;
  const claimed = await store.claim(id, REF);
  if (claimed.result !== 'claimed') throw new Error(claimed.result);
  const { claim } = claimed;
  let position = 0;
  const write = (text: string) => store.append(claim, { after: position++, events: [{ type: 'text', text }] });
  for (let i = 0; i < entries; i++) await write(`wörd ${i}\n\n`);
  return { id, write, finish: () => store.finish(claim, { status: 'success', answer: 'done' }) };
}

async function collect(following: AsyncIterable<FollowEvent>): Promise<FollowEvent[]> {
  const seen: FollowEvent[] = [];
  for await (const one of following) seen.push(one);
  return seen;
}

test('the client returns the results of the store', async () => {
  const served = serve({ store: createMemoryStore({ maxReady: 3 }) });
  const client = createClient(served);
  const created = await client.create({ agent: 'assistant', input: 'hello', key: 'k1', conversation: 'c1' });
  expect(created).toMatchObject({ result: 'created', task: { tenant: 'acme' } });
  const { id } = (created as { task: { id: string } }).task;
  expect(await client.create({ agent: 'assistant', input: 'x', key: 'k1', conversation: 'c1' })).toMatchObject({
    result: 'duplicate',
    isSameInput: false,
    task: { id },
  });
  expect(await client.create({ agent: 'assistant', input: 'hello', key: 'k1', conversation: 'c1' })).toMatchObject({
    result: 'duplicate',
    isSameInput: true,
  });
  expect(await client.create({ agent: 'assistant', input: 'x', conversation: 'c1', policy: 'reject' })).toEqual({
    result: 'rejected',
  });
  expect(await client.get(id)).toEqual(await served.store.get({ tenant: 'acme', id }));
  expect(await client.get('t-nothing')).toBeUndefined();
  expect((await client.list({ conversation: 'c1', limit: 5 })).tasks).toHaveLength(1);
  expect(await client.conversation('c1', { messages: 5 })).toMatchObject({ current: id, historyLength: 0 });
  expect(await client.conversation('c2')).toBeUndefined();
  expect(await client.steer(id, 'be brief')).toEqual({ result: 'accepted', number: 1 });
  expect(await client.cancelCall(id, 'call/1?', { reason: 'slow' })).toEqual({ result: 'accepted', number: 2 });
  expect(await client.questions()).toEqual({ questions: [] });
  expect(await client.answer(`${id}.none`, { decision: 'yes' })).toEqual({ result: 'not-found' });
  expect(await client.cancel(id, { mode: 'now', reason: 'enough' })).toMatchObject({
    result: 'accepted',
    reason: { message: 'enough' },
  });
  expect(await client.cancel(id)).toEqual({ result: 'too-late', status: 'cancelled' });
  expect(await client.steer(id, 'x')).toEqual({ result: 'too-late', status: 'cancelled' });
  expect(await client.cancel('t-nothing')).toEqual({ result: 'not-found' });
  expect(await client.cancelConversation('c1')).toEqual({ result: 'not-found' });
  for (let i = 0; i < 3; i++) await client.create({ agent: 'assistant', input: i });
  expect(await client.create({ agent: 'assistant', input: 'x' })).toEqual({ result: 'full', what: 'tasks', limit: 3 });
  expect(await client.cancelAll({ all: true }, { dryRun: true })).toHaveLength(3);
  expect(await client.cancelAll({ status: 'init' }, { reason: 'all' })).toMatchObject([
    { result: 'accepted' },
    { result: 'accepted' },
    { result: 'accepted' },
  ]);
  const operator = createTaskClient({
    url: ORIGIN,
    token: served.tokens.operator,
    tenant: 'acme',
    fetch: ((url: string, init: RequestInit) => served.api.fetch(new Request(url, init))) as typeof fetch,
  });
  expect((await operator.list()).tasks).toHaveLength(4);
});

test('requests that the server rejects throw readable errors without secrets', async () => {
  const served = serve();
  await expect(createClient(served, 'reader').create({ agent: 'a', input: 'x' })).rejects.toMatchObject({
    status: 403,
    code: 'forbidden',
  });
  await expect(createClient(served).list({ limit: 0 })).rejects.toThrow(TaskApiError);
  const proxy = createClient(
    served,
    'ann',
    () => () => Promise.resolve(new Response('<h1>Not found</h1>', { status: 404 })),
  );
  const error = await proxy.get('t-1').catch((one: unknown) => one as TaskApiError);
  expect(error).toMatchObject({ code: 'no-task-api' });
  expect(JSON.stringify([error, (error as Error).message])).not.toContain(served.tokens.ann);
  const busy = createClient(
    served,
    'ann',
    () => () =>
      Promise.resolve(
        Response.json(
          { error: { code: 'store-busy', message: 'm' } },
          { status: 503, headers: { 'retry-after': '2' } },
        ),
      ),
  );
  await expect(busy.list()).rejects.toMatchObject({ retryAfterMs: 2_000 });
});

test('following over HTTP shows what following over the store shows', async () => {
  const served = serve();
  const { id, write, finish } = await createRun(served.store, 3);
  const following = createClient(served).follow(id);
  const first = [await following.next(), await following.next(), await following.next()];
  expect(first.map(({ value }) => (value as { position: number }).position)).toEqual([1, 2, 3]);
  const rest = collect(following);
  await write('more');
  await finish();
  await rest;
  const expected = await collect(followTask(served.store, { tenant: 'acme', id }));
  expect([...first.map(({ value }) => value), ...(await rest)]).toEqual(JSON.parse(JSON.stringify(expected)));
});

test('wherever the connection breaks, nothing is missing and nothing comes twice', async () => {
  const served = serve();
  const { id, finish } = await createRun(served.store, 20);
  await finish();
  const expected = await collect(followTask(served.store, { tenant: 'acme', id }));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 3_000 }), { maxLength: 8 }), async (cuts) => {
      const left = [...cuts];
      const client = createClient(served, 'ann', (fetch) => async (url, init) => {
        const response = await fetch(url, init);
        const bytes = left.shift();
        return bytes === undefined ? response : new Response(response.body!.pipeThrough(cutAfter(bytes)), response);
      });
      const seen = await collect(client.follow(id, { retryMs: 0 }));
      expect(seen).toEqual(JSON.parse(JSON.stringify(expected)));
    }),
    { numRuns: 60, seed: 13 },
  );
});

/** Passes `bytes` bytes on, then breaks off. */
function cutAfter(bytes: number): TransformStream<Uint8Array, Uint8Array> {
  let left = bytes;
  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk.slice(0, left));
      left -= chunk.length;
      if (left <= 0) controller.error(new TypeError('the connection was lost'));
    },
  });
}

test('refusals for now are waited out, others end the following', async () => {
  const served = serve();
  const { id, finish } = await createRun(served.store, 1);
  await finish();
  const answers = [500, 502, 503, 429];
  const lost: unknown[] = [];
  const client = createClient(served, 'ann', (fetch) => (url, init) => {
    const status = answers.shift();
    if (status === undefined) return fetch(url, init);
    return Promise.resolve(new Response('', { status, headers: { 'retry-after': '0' } }));
  });
  const seen = await collect(client.follow(id, { retryMs: 0, onDisconnect: (error) => lost.push(error) }));
  expect(seen.map(({ type }) => type)).toEqual(['entry', 'end']);
  expect(lost).toHaveLength(4);
  await expect(collect(createClient(served).follow('t-nothing'))).rejects.toMatchObject({ status: 404 });
  await expect(collect(createClient(served, 'bob').follow(id))).rejects.toMatchObject({ status: 404 });
  await expect(collect(createClient(served, 'starter').follow(id))).rejects.toMatchObject({ status: 403 });
});

test('a silent connection is closed and opened again', async () => {
  const served = serve();
  const { id, finish } = await createRun(served.store, 1);
  await finish();
  let opened = 0;
  const client = createClient(served, 'ann', (fetch) => (url, init) => {
    if (opened++ > 0) return fetch(url, init);
    const silent = new ReadableStream<Uint8Array>({
      start(controller) {
        init.signal!.addEventListener('abort', () => controller.error(new DOMException('aborted', 'AbortError')));
      },
    });
    return Promise.resolve(new Response(silent));
  });
  expect(await collect(client.follow(id, { idleTimeoutMs: 10, retryMs: 0 }))).toHaveLength(2);
  expect(opened).toBe(2);
});

test('a following ends when its reader leaves or is stopped: during, before and after', async () => {
  const served = serve({ limits: { maxStreams: 1 } });
  const { id, finish } = await createRun(served.store, 2);
  const client = createClient(served);
  const leaving = new AbortController();
  const following = client.follow(id, { signal: leaving.signal });
  await following.next();
  await following.next();
  const pending = following.next();
  leaving.abort();
  expect(await pending).toEqual({ done: true, value: undefined });
  const second = client.follow(id, { retryMs: 0 });
  await second.next();
  const waiting = second.next().then(() => second.next());
  expect(await second.return!()).toEqual({ done: true, value: undefined });
  expect(await waiting).toMatchObject({ done: true });
  expect(await collect(client.follow(id, { signal: AbortSignal.abort() }))).toEqual([]);
  await finish();
  // Each gave its place back.
  expect(await collect(client.follow(id, { retryMs: 0 }))).toHaveLength(3);
  expect(await served.store.get({ tenant: 'acme', id })).toMatchObject({ status: 'success' });
});

test('a page that bundles the client gets the client and nothing else', () => {
  const entry = fileURLToPath(new URL('index.ts', import.meta.url));
  const { metafile } = buildSync({
    entryPoints: [entry],
    bundle: true,
    write: false,
    metafile: true,
    platform: 'browser',
    format: 'esm',
    conditions: ['@whoa/source'],
  });
  const files = Object.keys(metafile.inputs);
  expect(files.filter((file) => !/packages\/server\/src\/tasks\/client\/[\w-]+\.ts$/.test(file))).toEqual([]);
  expect(files.length).toBeGreaterThan(3);
});
