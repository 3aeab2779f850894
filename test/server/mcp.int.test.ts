// Agents as MCP tools over loopback HTTP, called by the official client and by our own tools.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { CancellationToken } from '@whoa/core';
import { createAccess, createMcpHandler, listen, type Principal, USER_RIGHTS } from '@whoa/server';
import { createMemoryStore, createRunner, type TaskContext, type TaskStore } from '@whoa/tasks';
import { createMcpTools } from '@whoa/tools';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { callTool } from '../workspace.ts';
import { TASKS } from './mcp-host.ts';

const PEOPLE: Readonly<Record<string, Principal>> = {
  ann: { tenant: 'acme', name: 'ann', rights: USER_RIGHTS },
  bob: { tenant: 'other', name: 'bob', rights: USER_RIGHTS },
  starter: { tenant: 'acme', name: 'starter', rights: ['start'] },
};
const AGENTS = { echo: 'Repeats', slow: 'Works until it is stopped', fails: 'Fails' };

/** A server with a worker. `began` resolves with the task of the next slow agent. */
async function serve() {
  const store = createMemoryStore();
  const waiting: ((id: string) => void)[] = [];
  const slow = async ({ task, signal }: TaskContext): Promise<string> => {
    waiting.shift()?.(task.id);
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    return 'stopped half way';
  };
  const agents = {
    echo: ({ task }: TaskContext) => Promise.resolve(`You said ${task.inputs[0] as string}`),
    slow,
    fails: () => Promise.reject(new Error('the disk is full')),
  };
  const runner = createRunner({ store, agents });
  await runner.serve();
  const access = createAccess({ authenticate: (request) => PEOPLE[request.headers.get('x-user') ?? ''] });
  const listening = await listen(await createMcpHandler({ store, agents: AGENTS, access }));
  const connect = async (user: string, isModern = true, capabilities = {}): Promise<Client> => {
    const versionNegotiation = { mode: isModern ? ('auto' as const) : ('legacy' as const) };
    const client = new Client({ name: 'host', version: '1' }, { versionNegotiation, capabilities });
    const requestInit = { headers: { 'x-user': user } };
    await client.connect(new StreamableHTTPClientTransport(new URL(listening.url), { requestInit }));
    return client;
  };
  return {
    store,
    connect,
    url: listening.url,
    began: () => new Promise<string>((resolve) => waiting.push(resolve)),
    async [Symbol.asyncDispose]() {
      await listening[Symbol.asyncDispose]();
      await runner[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

const readStatus = async (store: TaskStore, id: string) => (await store.get({ tenant: 'acme', id }))?.status;

async function waitForStatus(store: TaskStore, id: string, status: string): Promise<void> {
  while ((await readStatus(store, id)) !== status) await new Promise((resolve) => setImmediate(resolve));
}

test.each([true, false])('a host without MCP tasks waits for the end (2026 protocol: %s)', async (isModern) => {
  await using served = await serve();
  const client = await served.connect('ann', isModern);
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['echo', 'slow', 'fails']);
  const call = (name: string, prompt: unknown) => client.callTool({ name, arguments: { prompt } });
  expect(await call('echo', 'hello')).toMatchObject({ content: [{ type: 'text', text: 'You said hello' }] });
  expect(await call('fails', 'x')).toMatchObject({ isError: true, content: [{ text: 'the disk is full' }] });
  await expect(call('echo', '')).rejects.toThrow('prompt: expected a text that is not empty');
  await expect(call('nobody', 'x')).rejects.toThrow("There is no tool 'nobody'");
  await client.close();
});

test('a closed request cancels its task and no other', async () => {
  await using served = await serve();
  const client = await served.connect('ann');
  const stop = new AbortController();
  const start = async (signal?: AbortSignal) => {
    const began = served.began();
    const result = client.callTool({ name: 'slow', arguments: { prompt: 'go' } }, { ...(signal && { signal }) });
    const settled = result.catch((error: unknown) => error);
    return { id: await began, settled };
  };
  const first = await start(stop.signal);
  const second = await start();
  stop.abort('enough');
  await first.settled;
  await waitForStatus(served.store, first.id, 'cancelled');
  expect(await served.store.get({ tenant: 'acme', id: first.id })).toMatchObject({
    outcome: { reason: { kind: 'user', by: 'ann', via: 'mcp' } },
  });
  expect(await readStatus(served.store, second.id)).toBe('running');
  await served.store.cancel({ tenant: 'acme', id: second.id }, { kind: 'user' }, { mode: 'now' });
  expect(await second.settled).toMatchObject({ isError: true });
  await client.close();
});

test('with MCP tasks a call is a task: followed, cancelled, and seen by its tenant only', async () => {
  await using served = await serve();
  const transport = { type: 'http', url: served.url, headers: { 'x-user': 'ann' } } as const;
  await using mcp = await createMcpTools({ name: 'whoa', transport });
  const tool = (name: string) => mcp.tools.find((one) => one.name === `whoa_${name}`)!;
  expect(await callTool(tool('echo'), { prompt: 'hi' })).toMatchObject({ state: 'finished', content: 'You said hi' });
  expect(await callTool(tool('fails'), { prompt: 'hi' })).toMatchObject({ state: 'finished', isError: true });
  using token = new CancellationToken();
  const began = served.began();
  const call = callTool(tool('slow'), { prompt: 'go' }, { token });
  const id = await began;
  // The host has the task once its request about it was answered.
  const capabilities = { extensions: { [TASKS]: {} } };
  const host = await served.connect('ann', true, capabilities);
  const ask = (client: Client, method: string, taskId = id) =>
    client.request({ method, params: { taskId, inputResponses: {} } }, z.looseObject({}));
  expect(await ask(host, 'tasks/get')).toMatchObject({ taskId: id, status: 'working', ttlMs: null });
  const stranger = await served.connect('bob', true, capabilities);
  await expect(ask(stranger, 'tasks/get')).rejects.toThrow('There is no such task');
  await expect(ask(stranger, 'tasks/cancel')).rejects.toThrow('There is no such task');
  await expect(ask(host, 'tasks/cancel', 'nonsense')).rejects.toThrow('There is no such task');
  await expect(ask(host, 'tasks/update')).rejects.toThrow('has no question for this host');
  expect(await readStatus(served.store, id)).toBe('running');
  await ask(host, 'tasks/cancel');
  await ask(host, 'tasks/cancel');
  expect(await call).toMatchObject({ isError: true });
  expect(await ask(host, 'tasks/get')).toMatchObject({ status: 'cancelled' });
  // After the end a cancel changes nothing.
  await ask(host, 'tasks/cancel');
  expect(await readStatus(served.store, id)).toBe('cancelled');
  await Promise.all([host.close(), stranger.close()]);
});

test('our own cancel of such a call is confirmed: interrupted', async () => {
  await using served = await serve();
  const transport = { type: 'http', url: served.url, headers: { 'x-user': 'ann' } } as const;
  await using mcp = await createMcpTools({ name: 'whoa', transport });
  using token = new CancellationToken();
  const slow = mcp.tools.find(({ name }) => name === 'whoa_slow')!;
  const began = served.began();
  const call = callTool(slow, { prompt: 'go' }, { token });
  const id = await began;
  // The task has begun, and perhaps its host does not know its id yet.
  token.cancel({ kind: 'user' }, { mode: { abortMs: 20_000 } });
  expect((await call).state).toBe('interrupted');
  expect(await readStatus(served.store, id)).toBe('cancelled');
});

test('MCP needs an identity and all three rights', async () => {
  await using served = await serve();
  await expect(served.connect('nobody', false)).rejects.toThrow('Authentication is required');
  await expect(served.connect('starter', false)).rejects.toThrow(/MCP needs the right/);
});
