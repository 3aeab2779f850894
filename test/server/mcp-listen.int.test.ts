// Changes of tasks, pushed to an MCP host over loopback HTTP.
import { createAgent, defineTool } from '@whoa/core';
import { createScriptedModel } from '@whoa/core/testing';
import { createAccess, createMcpHandler, listen } from '@whoa/server';
import { createMemoryStore, createRunner, createTaskApprovals, type TaskContext, type TaskStore } from '@whoa/tasks';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { ASKING, ask, type Fields, type HostOptions, post, TASKS, waitForTask } from './mcp-host.ts';

/** Watches that are open in the store. */
let watches = 0;

afterEach(() => {
  if (watches !== 0) throw new Error(`${watches} watches were left open`);
});

function createCountingStore(): TaskStore {
  const store = createMemoryStore();
  const watch = store.watch.bind(store);
  return Object.assign(store, {
    async watch(...args: Parameters<TaskStore['watch']>) {
      const watching = await watch(...args);
      // Workers watch too, by their name.
      if (args[0].worker !== undefined) return watching;
      watches++;
      return {
        async [Symbol.asyncDispose]() {
          watches--;
          await watching[Symbol.asyncDispose]();
        },
      };
    },
  });
}

const LONG = 'x'.repeat(1_000_000);

async function serve() {
  const store = createCountingStore();
  const approvals = createTaskApprovals();
  const tool = defineTool({
    name: 'run',
    description: 'Runs.',
    inputSchema: z.object({}),
    effects: 'execute',
    execute: () => 'it ran',
  });
  const asks = createAgent({
    name: 'asks',
    model: createScriptedModel([[{ call: 'run', input: {} }], ['Done.']]),
    tools: [tool],
    approve: approvals.approve,
  });
  const slow = async ({ signal }: TaskContext): Promise<string> => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    return 'stopped half way';
  };
  const agents = { asks, slow, long: () => Promise.resolve(LONG) };
  const runner = createRunner({ store, agents, approvals });
  await runner.serve();
  const access = createAccess({
    authenticate: (request) => request.headers.get('x-user') ?? undefined,
    limits: { maxStreams: 3 },
  });
  const described = { asks: 'Asks', slow: 'Works until it is stopped', long: 'Answers at length' };
  const listening = await listen(await createMcpHandler({ store, agents: described, access }));
  const as = (user: string, capabilities: object = ASKING): HostOptions => ({
    url: listening.url,
    headers: { 'x-user': user },
    capabilities,
  });
  const start = async (name: string) =>
    (await ask(as('ann'), 'tools/call', { name, arguments: { prompt: 'go' } })).result!['taskId'] as string;
  return {
    as,
    start,
    async [Symbol.asyncDispose]() {
      await listening[Symbol.asyncDispose]();
      await runner[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Fields;
  readonly result?: Fields;
}

/** Listens to tasks. `next` returns the next message, or `undefined` at the end of the stream. */
async function openListening(host: HostOptions, taskIds: readonly string[]) {
  const stop = new AbortController();
  const response = await post(host, {
    method: 'subscriptions/listen',
    params: { notifications: { taskIds } },
    signal: stop.signal,
  });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const next = async (): Promise<Message | undefined> => {
    for (;;) {
      const end = text.indexOf('\n\n');
      if (end >= 0) {
        const data = text
          .slice(0, end)
          .split('\n')
          .find((line) => line.startsWith('data: '));
        text = text.slice(end + 2);
        if (data !== undefined) return JSON.parse(data.slice('data: '.length)) as Message;
        continue;
      }
      const { done, value } = await reader.read();
      if (done) return undefined;
      text += value;
    }
  };
  return { response, next, leave: () => stop.abort(new Error('left')) };
}

const EVENT_STREAM = 'text/event-stream';

test('a host that listens is told how its tasks are, then each change, then that nothing follows', async () => {
  await using served = await serve();
  const ann = served.as('ann');
  const taskId = await served.start('asks');
  await waitForTask(ann, taskId, 'input_required');
  const { next, response } = await openListening(ann, [taskId, taskId, 'nonsense']);
  expect(response.headers.get('content-type')).toBe(EVENT_STREAM);
  const acknowledged = await next();
  expect(acknowledged).toMatchObject({
    method: 'notifications/subscriptions/acknowledged',
    params: { notifications: { taskIds: [taskId] } },
  });
  const { _meta } = acknowledged!.params!;
  const asking = await next();
  expect(asking).toMatchObject({ method: 'notifications/tasks', params: { taskId, status: 'input_required', _meta } });
  const got = (await ask(ann, 'tasks/get', { taskId })).result!;
  const { resultType: _, _meta: __, ...state } = got;
  expect(asking!.params).toEqual({ ...state, _meta });
  const [key] = Object.keys(asking!.params!['inputRequests'] as object);
  await ask(ann, 'tasks/update', { taskId, inputResponses: { [key!]: { action: 'accept' } } });
  const seen: unknown[] = [];
  for (;;) {
    const message = await next();
    if (message?.method !== 'notifications/tasks') {
      expect(message).toMatchObject({ result: { resultType: 'complete', _meta } });
      break;
    }
    seen.push(message.params!['status']);
    if (message.params!['status'] === 'completed')
      expect(message.params).toMatchObject({ result: { content: [{ text: 'Done.' }] } });
  }
  expect(seen.at(-1)).toBe('completed');
  expect(seen.filter((status) => status === 'completed')).toHaveLength(1);
  expect(await next()).toBeUndefined();
});

test('a cancel is told to who listens, and a host that leaves ends its listening only', async () => {
  await using served = await serve();
  const ann = served.as('ann');
  const taskId = await served.start('slow');
  const leaving = await openListening(ann, [taskId]);
  await leaving.next();
  await leaving.next();
  const staying = await openListening(ann, [taskId]);
  await staying.next();
  expect(await staying.next()).toMatchObject({ params: { status: 'working' } });
  leaving.leave();
  await expect(leaving.next()).rejects.toThrow('left');
  expect((await ask(ann, 'tasks/get', { taskId })).result).toMatchObject({ status: 'working' });
  await ask(ann, 'tasks/cancel', { taskId });
  let last = await staying.next();
  while (last?.params?.['status'] === 'working') last = await staying.next();
  expect(last).toMatchObject({ params: { taskId, status: 'cancelled' } });
  expect(await staying.next()).toMatchObject({ result: { resultType: 'complete' } });
});

test('a host that does not read stalls no task, and gets the newest states later', async () => {
  await using served = await serve();
  const ann = served.as('ann');
  const ids = await Promise.all(Array.from({ length: 8 }, () => served.start('long')));
  const slow = await openListening(ann, ids);
  for (const id of ids) await waitForTask(ann, id, 'completed');
  expect(await slow.next()).toMatchObject({ params: { notifications: { taskIds: ids } } });
  const states = new Map<unknown, unknown>();
  for (let message = await slow.next(); message?.params !== undefined; message = await slow.next())
    states.set(message.params['taskId'], message.params['status']);
  expect([...states.values()]).toEqual(ids.map(() => 'completed'));
});

test('only the tasks of its own tenant are acknowledged, and without any the stream ends', async () => {
  await using served = await serve();
  const taskId = await served.start('slow');
  const { next } = await openListening(served.as('bob'), [taskId]);
  expect(await next()).toMatchObject({ params: { notifications: { taskIds: [] } } });
  expect(await next()).toMatchObject({ result: { resultType: 'complete' } });
  expect(await next()).toBeUndefined();
});

test('who does not know tasks, or opens too many streams, is refused', async () => {
  await using served = await serve();
  const taskId = await served.start('slow');
  const listening = { method: 'subscriptions/listen', params: { notifications: { taskIds: [taskId] } } };
  const without = await post(served.as('ann', {}), listening);
  expect(without.status).toBe(400);
  expect(await without.json()).toMatchObject({
    error: { code: -32_021, data: { requiredCapabilities: { extensions: { [TASKS]: {} } } } },
  });
  const ann = served.as('ann');
  const open = await Promise.all([1, 2, 3].map(() => openListening(ann, [taskId])));
  const refused = await post(ann, listening);
  expect(refused.status).toBe(429);
  await refused.text();
  for (const { leave } of open) leave();
  while (watches > 0) await new Promise((resolve) => setImmediate(resolve));
  // Without tasks, or with ones that are none, the library serves the request.
  for (const notifications of [{}, { taskIds: 'all' }, { taskIds: [1] }]) {
    const plain = await post(ann, { method: 'subscriptions/listen', params: { notifications } });
    expect(await plain.text()).toContain('"notifications":{}');
  }
  const broken = await post({ ...ann, headers: { ...ann.headers, 'mcp-protocol-version': 'x' } }, listening);
  expect(broken.status).toBe(400);
  await broken.text();
});
