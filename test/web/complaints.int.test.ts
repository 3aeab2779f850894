// What people complain of elsewhere, tried against our chat: two instances over one Postgres, the real AI SDK.
import { createOpenAI } from '@ai-sdk/openai';
import { type LoopbackProvider, type ScriptedResponse, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { type AuditEvent, type ChatHandler, createChatHandler } from '@whoa/server';
import { StoppableChatTransport } from '@whoa/server/transport';
import { createTaskStore, isFinalStatus, type TaskStore } from '@whoa/tasks';
import { streamText, tool, type UIMessage, type UIMessageChunk } from 'ai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { until } from '../promises/fixture.ts';
import { type BorrowedServer, borrowPostgres } from '../servers/borrow.ts';

let postgres: BorrowedServer;
beforeAll(async () => {
  postgres = await borrowPostgres();
});
afterAll(() => postgres[Symbol.asyncDispose]());

interface ChatHarness extends AsyncDisposable {
  readonly provider: LoopbackProvider;
  readonly store: TaskStore;
  readonly instances: readonly ChatHandler[];
  readonly audited: readonly AuditEvent[];
  readonly started: Promise<void>;
  /** What tools did, in order. */
  readonly did: readonly string[];
  /** Lets the tool, which hears nothing, return. */
  release(): void;
  post(path: string, body: object, instance?: number): Promise<Response>;
  send(text: string, options?: { signal?: AbortSignal; runId?: string }): Promise<ReadableStream<UIMessageChunk>>;
}

let harnesses = 0;

async function openHarness(script: readonly ScriptedResponse[]): Promise<ChatHarness> {
  const provider = await startLoopbackProvider({ script: [...script] });
  const store = createTaskStore({ backend: 'postgres', url: postgres.url, schema: `complaints_${++harnesses}` });
  const [started, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const did: string[] = [];
  const audited: AuditEvent[] = [];
  const book = tool({
    description: 'Books.',
    inputSchema: z.object({}),
    execute: async () => {
      did.push('begun');
      started.resolve();
      await released.promise;
      did.push('booked');
      return 'booked';
    },
  });
  const instances = [1, 2].map(() =>
    createChatHandler({
      store,
      authenticate: () => 'ada',
      audit: (event) => audited.push(event),
      tools: { book },
      reply: (turn) =>
        streamText({ model: createOpenAI({ baseURL: provider.url, apiKey: 'none' }).chat('gpt-4o'), ...turn }),
    }),
  );
  const post = (path: string, body: object, instance = 0) =>
    instances[instance]!.fetch(
      new Request(`http://app.test/api/chat${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    );
  const transport = new StoppableChatTransport({
    api: 'http://app.test/api/chat',
    fetch: ((url: string, init: RequestInit) => instances[0]!.fetch(new Request(url, init))) as typeof fetch,
  });
  let messages = 0;
  return {
    provider,
    store,
    instances,
    audited,
    started: started.promise,
    did,
    release: released.resolve,
    post,
    send: (text, { signal, runId } = {}) =>
      transport.sendMessages({
        chatId: 'c',
        trigger: 'submit-message',
        messageId: undefined,
        messages: [{ id: `u${++messages}`, role: 'user', parts: [{ type: 'text', text }] }],
        abortSignal: signal,
        ...(runId !== undefined && { body: { runId } }),
      }),
    async [Symbol.asyncDispose]() {
      released.resolve();
      for (const instance of instances) await instance[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      await provider.close();
    },
  };
}

const HALF: ScriptedResponse = { parts: [{ text: ['Once upon', { stall: true }] }] };
const DONE: ScriptedResponse = { parts: [{ text: 'Done.' }] };
const BOOK: ScriptedResponse = { parts: [{ text: 'I book. ' }, { call: 'book', id: 'b' }] };

async function read(stream: ReadableStream<UIMessageChunk>, onWords: () => void = () => {}): Promise<string> {
  let text = '';
  try {
    for await (const chunk of stream) {
      if (chunk.type !== 'text-delta') continue;
      text += chunk.delta;
      onWords();
    }
  } catch (error) {
    if ((error as Error).name !== 'AbortError') throw error;
  }
  return text;
}

/** Sends a message and resolves when half of the reply is there. */
async function half(harness: ChatHarness): Promise<{ reading: Promise<string> }> {
  const started = Promise.withResolvers<void>();
  const reading = read(await harness.send('Tell me'), started.resolve);
  await started.promise;
  return { reading };
}

const lastTask = async ({ store }: ChatHarness) => (await store.list({ tenant: 'ada', conversation: 'c' })).tasks[0]!;

async function readMessages({ instances }: ChatHarness): Promise<UIMessage[]> {
  const response = await instances[1]!.fetch(new Request('http://app.test/api/chat/c/messages'));
  return (await response.json()) as UIMessage[];
}

test('stop and resume exclude each other (vercel/ai 6502, 8390): here both work', async () => {
  await using harness = await openHarness([HALF, DONE]);
  const { reading } = await half(harness);
  const resumed = await harness.instances[1]!.fetch(new Request('http://app.test/api/chat/c/stream'));
  expect(resumed.status).toBe(200);
  expect((await harness.post('/c/stop', {}, 1)).status).toBe(200);
  expect(await resumed.text()).toContain('"type":"abort"');
  expect(await reading).toBe('Once upon');
  expect((await harness.instances[0]!.fetch(new Request('http://app.test/api/chat/c/stream'))).status).toBe(204);
});

test('a stop leaves the server side running (cloudflare/agents 68, ag-ui 2288): here the model is left too', async () => {
  await using harness = await openHarness([HALF]);
  const { reading } = await half(harness);
  expect(harness.provider.openResponses).toBe(1);
  await harness.post('/c/stop', {});
  await reading;
  await harness.provider.waitForIdle();
  expect(await lastTask(harness)).toMatchObject({ status: 'cancelled' });
});

test('no one can cancel from another instance (bullmq 3768, mastra 22202): here any instance can', async () => {
  await using harness = await openHarness([HALF]);
  const { reading } = await half(harness);
  expect(await (await harness.post('/c/stop', {}, 1)).json()).toEqual({ result: 'accepted' });
  expect(await reading).toBe('Once upon');
});

test('a call is carried out after the cancel (gemini-cli 28091, goose 9938): here it never begins', async () => {
  const gate = Promise.withResolvers<void>();
  await using harness = await openHarness([
    { parts: [{ text: ['I book. ', { stall: gate.promise }] }, { call: 'book', id: 'b' }] },
    DONE,
  ]);
  const { reading } = await half(harness);
  await harness.post('/c/stop', {});
  gate.resolve();
  await reading;
  await harness.provider.waitForIdle();
  expect(harness.did).toEqual([]);
});

test('the status lies, or is overwritten (mastra 20447, langgraphjs 2755): here the end is the end', async () => {
  await using harness = await openHarness([BOOK, DONE]);
  const reading = read(await harness.send('Book'));
  await harness.started;
  await harness.post('/c/stop', {});
  // The tool gets no signal, so its result is unknown and must be reported as unknown.
  await until(async () => isFinalStatus((await lastTask(harness)).status));
  const ended = await lastTask(harness);
  expect(ended).toMatchObject({
    status: 'cancelled',
    outcome: { stopReport: { isClean: false, calls: [{ state: 'unknown' }] } },
  });
  harness.release();
  await until(() => harness.did.includes('booked'));
  expect(await reading).toBe('I book. ');
  // Only the history shows how it ended.
  await until(async () => JSON.stringify(await readMessages(harness)).includes('still finished later'));
  const { tasks } = await harness.store.list({ tenant: 'ada', conversation: 'c' });
  expect(tasks.find(({ id }) => id === ended.id)).toEqual(ended);
});

test('the text so far is lost (mastra 17510, vercel/chatbot 1404): here it is in the history', async () => {
  await using harness = await openHarness([HALF, DONE]);
  const { reading } = await half(harness);
  await harness.post('/c/stop', {});
  await reading;
  const words = (await readMessages(harness)).map(({ role, parts }) => [
    role,
    ...parts.flatMap((p) => ('text' in p ? p.text : [])),
  ]);
  expect(words).toEqual([
    ['user', 'Tell me'],
    ['assistant', 'Once upon'],
  ]);
  expect(await read(await harness.send('And?'))).toBe('Done.');
  expect(JSON.stringify(harness.provider.requests.at(-1)!.body)).toContain('Once upon');
});

test('a run can be stopped before it exists (ag-ui 2759), because the page creates its id', async () => {
  await using harness = await openHarness([HALF]);
  expect(await (await harness.post('/c/stop', { runId: 'mine' })).json()).toEqual({ result: 'recorded' });
  const response = await harness.post('', {
    id: 'c',
    runId: 'mine',
    messages: [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'Go' }] }],
  });
  expect(await response.text()).toContain('"type":"abort"');
  expect(harness.provider.requests).toEqual([]);
});

test('a lost connection should cancel, and must not (openai-python 2643): here it never does, and a stop always does', async () => {
  await using harness = await openHarness([HALF]);
  const leaving = new AbortController();
  const started = Promise.withResolvers<void>();
  const reading = read(await harness.send('Tell me', { signal: leaving.signal }), started.resolve).catch(() => '');
  await started.promise;
  leaving.abort();
  await reading;
  expect((await lastTask(harness)).status).toBe('running');
  expect(harness.provider.openResponses).toBe(1);
  await harness.post('/c/stop', {}, 1);
  await until(async () => (await lastTask(harness)).status === 'cancelled');
});

test('no one knows who stopped it and why: here the record, the report and the audit show it', async () => {
  await using harness = await openHarness([HALF]);
  const { reading } = await half(harness);
  await harness.post('/c/stop', { reason: 'wrong question' }, 1);
  await reading;
  const reason = { kind: 'user', by: 'ada', via: 'chat', message: 'wrong question' };
  await until(async () => isFinalStatus((await lastTask(harness)).status));
  expect((await lastTask(harness)).outcome).toMatchObject({ reason, stopReport: { reason } });
  expect(harness.audited).toMatchObject([
    { type: 'cancel', actor: 'ada', tenant: 'ada', target: 'c', result: 'accepted' },
  ]);
});
