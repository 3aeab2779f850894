// What a chat left running on purpose: it outlives the reply, and is stopped from another instance, over every protocol.
import { createOpenAI } from '@ai-sdk/openai';
import { fromAiSdk } from '@whoa/ai-sdk';
import { createAgent, type Tool } from '@whoa/core';
import { createAgUiHandler, createChatHandler } from '@whoa/server';
import { StoppableChatTransport } from '@whoa/server/transport';
import { createBackground, createMemoryStore, type TaskStore, type TaskSummary } from '@whoa/tasks';
import { createBackgroundProcesses, createBackgroundTools, createBashTool, createContainment } from '@whoa/tools';
import { afterAll, describe, expect, test } from 'vitest';
import { openFixture, until } from '../promises/fixture.ts';
import { sharedStores } from '../promises/surfaces/task.ts';
import { openStore } from '../tasks/open-store.ts';

const containment = createContainment();
afterAll(() => containment[Symbol.asyncDispose]());

const storeKinds = [
  { name: 'memory', open: () => ((one) => [one, one])(createMemoryStore()) },
  ...sharedStores(['Postgres']).map((location) => ({
    name: location.name,
    open: async () => ((where) => [openStore(where), openStore(where)])(await location.open()),
  })),
] as readonly { name: string; open(): [TaskStore, TaskStore] | Promise<[TaskStore, TaskStore]> }[];

/** The agent starts a command in the background. Told to serve it talks on without end, otherwise it is done. */
async function openChat(location: (typeof storeKinds)[number]) {
  const fixture = await openFixture(({ said, results }) => {
    if (results === 0 && /serve|start/.test(said))
      return { parts: [{ call: 'bash', id: 'b', input: { command: fixture.tree, background: true } }] };
    if (/list/.test(said) && results === 0) return { parts: [{ call: 'background_list', id: 'l' }] };
    return said.includes('serve') ? { parts: [{ text: ['It runs. ', { stall: true }] }] } : undefined;
  });
  const [own, others] = await location.open();
  const background = createBackground();
  const processes = createBackgroundProcesses({ containment, registry: background });
  const authenticate = (request: Request) => request.headers.get('x-user');
  const one = createChatHandler({
    store: own,
    authenticate,
    background,
    agent: createAgent({
      name: 'assistant',
      model: fromAiSdk(createOpenAI({ baseURL: fixture.provider.url, apiKey: 'none' }).chat('gpt-4o')),
      tools: [
        createBashTool({ containment, background: processes }),
        ...createBackgroundTools(processes),
      ] as unknown as Tool[],
    }),
  });
  const audited: string[] = [];
  const elsewhere = { store: others, authenticate, agent: 'assistant' };
  const other = createChatHandler({
    ...elsewhere,
    audit: ({ actor, type, scope, result }) => audited.push(`${actor} ${type} ${scope} ${result}`),
  });
  const agUi = createAgUiHandler(elsewhere);
  const ask = async (path: string, body: object, user = 'ada') => {
    const headers = { 'content-type': 'application/json', 'x-user': user };
    const request = new Request(`http://app.test/api/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    const response = await (path.startsWith('ag-ui') ? agUi : other).fetch(request);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const page = (user = 'ada') =>
    new StoppableChatTransport({
      api: 'http://app.test/api/chat',
      headers: { 'x-user': user },
      fetch: ((url: string, init: RequestInit) => one.fetch(new Request(url, init))) as typeof fetch,
    });
  return {
    fixture,
    store: others,
    audited,
    ask,
    page,
    /** Sends a message, and resolves when the reply contains `until`. */
    async say(text: string, { user = 'ada', until: words = 'All done.', transport = page(user) } = {}) {
      const stream = await transport.sendMessages({
        trigger: 'submit-message',
        chatId: 'c',
        messageId: undefined,
        messages: [{ id: text, role: 'user', parts: [{ type: 'text', text }] }],
        abortSignal: undefined,
      });
      let said = '';
      for await (const chunk of stream) {
        if (chunk.type === 'text-delta') said += chunk.delta;
        if (said === words) return;
      }
      throw new Error(`It ended with '${said}'`);
    },
    /** The newest task of an agent, once it has such a status. */
    async task(agent: string, ...statuses: string[]): Promise<TaskSummary> {
      const newest = async () => (await others.list({ tenant: 'ada' })).tasks.find((task) => task.agent === agent);
      await until(async () => statuses.includes((await newest())?.status ?? ''));
      return (await newest())!;
    },
    async [Symbol.asyncDispose]() {
      for (const part of [one, other, agUi, processes, own, others, fixture]) await part[Symbol.asyncDispose]();
    },
  };
}

describe.each(storeKinds)('$name', (location) => {
  test('a stop of the reply leaves the background alone; a stop of the background ends it, once', async () => {
    await using chat = await openChat(location);
    for (const scope of ['foreground', 'background', 'all'])
      expect((await chat.ask('chat/c/stop', { scope })).body).toMatchObject({ result: 'idle' });
    await chat.say('serve', { until: 'It runs. ' });
    await until(() => chat.fixture.processes().length > 0);
    expect((await chat.ask('chat/c/stop', {})).body).toEqual({ result: 'accepted' });
    await chat.task('assistant', 'cancelled');
    expect(chat.fixture.processes()).not.toEqual([]);
    expect((await chat.ask('chat/c/stop', { scope: 'background' }, 'eve')).body).toEqual({
      result: 'idle',
      background: 0,
    });
    const stop = { scope: 'background', reason: 'no server' };
    expect((await chat.ask('chat/c/stop', stop)).body).toEqual({ result: 'accepted', background: 1 });
    expect((await chat.ask('chat/c/stop', stop)).body).toMatchObject({ background: 0 });
    expect(await chat.task('whoa-background', 'cancelled')).toMatchObject({
      outcome: { reason: { kind: 'user', by: 'ada', via: 'chat', message: 'no server' }, isComplete: false },
    });
    expect(chat.fixture.processes()).toEqual([]);
    expect((await chat.ask('chat/c/stop', stop)).body).toEqual({ result: 'idle', background: 0 });
    expect(chat.audited).toContain('ada cancel background accepted');
    await chat.say('next');
  });

  test('a stop of the background leaves the reply alone', async () => {
    await using chat = await openChat(location);
    await chat.say('serve', { until: 'It runs. ' });
    await until(() => chat.fixture.processes().length > 0);
    expect((await chat.ask('chat/c/stop', { scope: 'background' })).body).toEqual({
      result: 'accepted',
      background: 1,
    });
    await chat.task('whoa-background', 'cancelled');
    expect(chat.fixture.processes()).toEqual([]);
    expect(await chat.task('assistant', 'running')).toMatchObject({ status: 'running' });
    expect((await chat.ask('chat/c/stop', { scope: 'all' })).body).toEqual({ result: 'accepted', background: 0 });
    expect((await chat.ask('chat/c/stop', { scope: 'all', runId: 'another' })).body).toMatchObject({
      result: 'recorded',
    });
  });

  test('a stop of everything ends both with one reason, over AG-UI; the next message works', async () => {
    await using chat = await openChat(location);
    await chat.say('serve', { until: 'It runs. ' });
    await until(() => chat.fixture.processes().length > 0);
    const stop = { scope: 'all', reason: 'enough' };
    expect((await chat.ask('ag-ui/c/stop', stop)).body).toEqual({ result: 'accepted', background: 1 });
    const reason = { kind: 'user', by: 'ada', via: 'ag-ui', message: 'enough' };
    for (const agent of ['assistant', 'whoa-background'])
      expect(await chat.task(agent, 'cancelled')).toMatchObject({ outcome: { reason } });
    expect(chat.fixture.processes()).toEqual([]);
    await chat.say('next');
  });

  test('a page that reads nothing stops the background, and no other page sees it', async () => {
    await using chat = await openChat(location);
    await chat.say('start');
    await until(() => chat.fixture.processes().length > 0);
    await chat.say('list', { user: 'eve' });
    expect(JSON.stringify(chat.fixture.provider.requests.at(-1)!.body)).toContain('There are none.');
    await chat.say('list');
    expect(JSON.stringify(chat.fixture.provider.requests.at(-1)!.body)).toContain('bg1  running');
    await chat.page('eve').stop('c', { scope: 'all' });
    expect(chat.fixture.processes()).not.toEqual([]);
    await chat.page().stop('c', { scope: 'all' });
    await chat.task('whoa-background', 'cancelled');
    expect(chat.fixture.processes()).toEqual([]);
  });
});

test('an unknown scope, and a run in the background, are rejected with a message', async () => {
  await using chat = await openChat(storeKinds[0]!);
  expect(await chat.ask('chat/c/stop', { scope: 'everything' })).toMatchObject({ status: 400 });
  for (const more of [{ runId: 'r' }, { messageId: 'm' }, { rollback: true }])
    expect(await chat.ask('chat/c/stop', { scope: 'background', ...more })).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining('leave out runId, messageId and rollback') as string } },
    });
});
