// What people complain of elsewhere, tried against our chat: two instances over one Redis, the real AI SDK.
import { createOpenAI } from '@ai-sdk/openai';
import { type Answer, type LoopbackProvider, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { type AuditEvent, type ChatHandler, createChatHandler } from '@whoa/server';
import { StoppableChatTransport } from '@whoa/server/client';
import { createTaskStore, isFinalStatus, type TaskStore } from '@whoa/tasks';
import { streamText, tool, type UIMessage, type UIMessageChunk } from 'ai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { until } from '../promises/fixture.ts';
import { type BorrowedServer, borrowRedis } from '../servers/borrow.ts';

let redis: BorrowedServer;
beforeAll(async () => {
  redis = await borrowRedis();
});
afterAll(() => redis[Symbol.asyncDispose]());

interface Stage extends AsyncDisposable {
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

let stages = 0;

async function openStage(script: readonly Answer[]): Promise<Stage> {
  const provider = await startLoopbackProvider({ script: [...script] });
  const store = createTaskStore({ backend: 'redis', url: redis.url, prefix: `stderrTail-${++stages}` });
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

const HALF: Answer = { parts: [{ text: ['Once upon', { stall: true }] }] };
const DONE: Answer = { parts: [{ text: 'Done.' }] };
const BOOK: Answer = { parts: [{ text: 'I book. ' }, { call: 'book', id: 'b' }] };

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
async function half(stage: Stage): Promise<{ reading: Promise<string> }> {
  const started = Promise.withResolvers<void>();
  const reading = read(await stage.send('Tell me'), started.resolve);
  await started.promise;
  return { reading };
}

const lastTask = async ({ store }: Stage) => (await store.list({ tenant: 'ada', conversation: 'c' })).tasks[0]!;

async function messagesOf({ instances }: Stage): Promise<UIMessage[]> {
  const response = await instances[1]!.fetch(new Request('http://app.test/api/chat/c/messages'));
  return (await response.json()) as UIMessage[];
}

test('stop and resume exclude each other (vercel/ai 6502, 8390): here both work', async () => {
  await using stage = await openStage([HALF, DONE]);
  const { reading } = await half(stage);
  const resumed = await stage.instances[1]!.fetch(new Request('http://app.test/api/chat/c/stream'));
  expect(resumed.status).toBe(200);
  expect((await stage.post('/c/stop', {}, 1)).status).toBe(200);
  expect(await resumed.text()).toContain('"type":"abort"');
  expect(await reading).toBe('Once upon');
  expect((await stage.instances[0]!.fetch(new Request('http://app.test/api/chat/c/stream'))).status).toBe(204);
});

test('a stop leaves the server side running (cloudflare/agents 68, ag-ui 2288): here the model is left too', async () => {
  await using stage = await openStage([HALF]);
  const { reading } = await half(stage);
  expect(stage.provider.openResponses).toBe(1);
  await stage.post('/c/stop', {});
  await reading;
  await stage.provider.waitForIdle();
  expect(await lastTask(stage)).toMatchObject({ status: 'cancelled' });
});

test('nobody can cancel from another instance (bullmq 3768, mastra 22202): here any instance can', async () => {
  await using stage = await openStage([HALF]);
  const { reading } = await half(stage);
  expect(await (await stage.post('/c/stop', {}, 1)).json()).toEqual({ result: 'accepted' });
  expect(await reading).toBe('Once upon');
});

test('a call is carried out after the cancel (gemini-cli 28091, goose 9938): here it never begins', async () => {
  const gate = Promise.withResolvers<void>();
  await using stage = await openStage([
    { parts: [{ text: ['I book. ', { stall: gate.promise }] }, { call: 'book', id: 'b' }] },
    DONE,
  ]);
  const { reading } = await half(stage);
  await stage.post('/c/stop', {});
  gate.resolve();
  await reading;
  await stage.provider.waitForIdle();
  expect(stage.did).toEqual([]);
});

test('the status lies, or is overwritten (mastra 20447, langgraphjs 2755): here the end is the end', async () => {
  await using stage = await openStage([BOOK, DONE]);
  const reading = read(await stage.send('Book'));
  await stage.started;
  await stage.post('/c/stop', {});
  // The tool hears nothing, so what becomes of it is not known, and nobody says otherwise.
  await until(async () => isFinalStatus((await lastTask(stage)).status));
  const ended = await lastTask(stage);
  expect(ended).toMatchObject({
    status: 'cancelled',
    outcome: { stopReport: { isClean: false, calls: [{ state: 'unknown' }] } },
  });
  stage.release();
  await until(() => stage.did.includes('booked'));
  expect(await reading).toBe('I book. ');
  // Only the history says what became of it.
  await until(async () => JSON.stringify(await messagesOf(stage)).includes('still finished later'));
  const { tasks } = await stage.store.list({ tenant: 'ada', conversation: 'c' });
  expect(tasks.find(({ id }) => id === ended.id)).toEqual(ended);
});

test('the text so far is lost (mastra 17510, vercel/chatbot 1404): here it is in the history', async () => {
  await using stage = await openStage([HALF, DONE]);
  const { reading } = await half(stage);
  await stage.post('/c/stop', {});
  await reading;
  const words = (await messagesOf(stage)).map(({ role, parts }) => [
    role,
    ...parts.flatMap((p) => ('text' in p ? p.text : [])),
  ]);
  expect(words).toEqual([
    ['user', 'Tell me'],
    ['assistant', 'Once upon'],
  ]);
  expect(await read(await stage.send('And?'))).toBe('Done.');
  expect(JSON.stringify(stage.provider.requests.at(-1)!.body)).toContain('Once upon');
});

test('there is no id to stop before the run exists (ag-ui 2759): here the page makes it', async () => {
  await using stage = await openStage([HALF]);
  expect(await (await stage.post('/c/stop', { runId: 'mine' })).json()).toEqual({ result: 'recorded' });
  const response = await stage.post('', {
    id: 'c',
    runId: 'mine',
    messages: [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'Go' }] }],
  });
  expect(await response.text()).toContain('"type":"abort"');
  expect(stage.provider.requests).toEqual([]);
});

test('a lost connection should cancel, and must not (openai-python 2643): here it never does, and a stop always does', async () => {
  await using stage = await openStage([HALF]);
  const leaving = new AbortController();
  const started = Promise.withResolvers<void>();
  const reading = read(await stage.send('Tell me', { signal: leaving.signal }), started.resolve).catch(() => '');
  await started.promise;
  leaving.abort();
  await reading;
  expect((await lastTask(stage)).status).toBe('running');
  expect(stage.provider.openResponses).toBe(1);
  await stage.post('/c/stop', {}, 1);
  await until(async () => (await lastTask(stage)).status === 'cancelled');
});

test('nobody knows who stopped it and why: here the record, the report and the audit say so', async () => {
  await using stage = await openStage([HALF]);
  const { reading } = await half(stage);
  await stage.post('/c/stop', { reason: 'wrong question' }, 1);
  await reading;
  const reason = { kind: 'user', by: 'ada', via: 'chat', message: 'wrong question' };
  await until(async () => isFinalStatus((await lastTask(stage)).status));
  expect((await lastTask(stage)).outcome).toMatchObject({ reason, stopReport: { reason } });
  expect(stage.audited).toMatchObject([
    { type: 'cancel', actor: 'ada', tenant: 'ada', target: 'c', result: 'accepted' },
  ]);
});
