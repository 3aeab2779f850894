/* oxlint-disable typescript/no-deprecated -- what applications have */
// What the pages of a chat are told, whoever changes it.
import { join } from 'node:path';
import { createOpenAI } from '@ai-sdk/openai';
import { type ScriptedResponse, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createTaskStore, type TaskStore } from '@whoa/tasks';
import { streamText, tool, type UIMessage } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDatabase } from '../../../../test/server/app-database.ts';
import { say } from '../../../../test/server/chat-harness.ts';
import { borrowPostgres } from '../../../../test/servers/borrow.ts';
import { temporaryFolder } from '../../../../test/tasks/child.ts';
import { createChatHandler } from './chat-handler.ts';
import { readChunks } from './client/read-chunks.ts';

interface State {
  readonly version: string;
  readonly reply?: string;
  readonly questions: readonly string[];
}

const TEXT: ScriptedResponse = { parts: [{ text: 'Done.' }] };
const STALLED: ScriptedResponse = { parts: [{ text: ['Well', { stall: true }] }] };
const ASK: ScriptedResponse = { parts: [{ call: 'pay', input: {} }] };

const PLACES = ['memory', 'sqlite', 'postgres', 'own database'] as const;

async function openStores(
  place: (typeof PLACES)[number],
  stack: AsyncDisposableStack,
): Promise<[TaskStore, TaskStore]> {
  const open = (address: string) => {
    const store = createTaskStore(address);
    stack.defer(() => store[Symbol.asyncDispose]());
    return store;
  };
  if (place === 'postgres') {
    const { url } = stack.use(await borrowPostgres());
    return [open(url), open(url)];
  }
  if (place === 'sqlite') {
    const url = `sqlite:${join(stack.use(temporaryFolder()).path, 'tasks.db')}`;
    return [open(url), open(url)];
  }
  const store = open('memory');
  return [store, store];
}

/** A chat that is served by two instances, and watched on the other one. */
async function openChat(place: (typeof PLACES)[number], script: readonly ScriptedResponse[]) {
  const stack = new AsyncDisposableStack();
  const provider = await startLoopbackProvider({ script: [...script] });
  stack.defer(() => provider.close());
  const db = stack.use(openDatabase());
  const model = createOpenAI({ baseURL: provider.url, apiKey: 'none' }).chat('gpt-4o');
  const [one, other] = (await openStores(place, stack)).map((store) =>
    stack.use(
      createChatHandler({
        store,
        authenticate: (request) => request.headers.get('x-user') ?? 'ada',
        tools: { pay: tool({ inputSchema: z.object({}), needsApproval: true, execute: () => 'paid' }) },
        ...(place === 'own database' && { history: db.history }),
        reply: (turn) => streamText({ model, ...turn }),
      }),
    ),
  );
  const send = (handler = one!, path = '', body?: object) =>
    handler.fetch(
      new Request(`http://app.test/api/chat${path}`, {
        method: body ? 'POST' : 'GET',
        headers: { 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify({ ...(path === '' && { id: 'c' }), ...body }) }),
      }),
    );
  return {
    db,
    provider,
    touch: () => one!.touch('c', 'ada'),
    remove: () => one!.remove('c', 'ada'),
    ask: async (body: object, path = '') => (await send(one, path, body)).text(),
    read: async () => {
      const response = await send(other, '/c/messages');
      const [version, reply] = response.headers.get('whoa-version')!.split(' ');
      return { version, reply, messages: (await response.json()) as UIMessage[] };
    },
    /** Reads the states until one is as wanted. */
    watch: (after?: string, headers: Readonly<Record<string, string>> = {}) => {
      const leaving = new AbortController();
      stack.defer(() => leaving.abort());
      const seen: State[] = [];
      const opened = other!.fetch(
        new Request(`http://app.test/api/chat/c/watch${after ? `?after=${encodeURIComponent(after)}` : ''}`, {
          signal: leaving.signal,
          headers,
        }),
      );
      const states = opened.then((response) => readChunks(response).getReader());
      return {
        seen,
        status: async () => (await opened).status,
        leave: () => leaving.abort(),
        /** Resolves when the stream has ended. */
        ended: async () => {
          for (const reader = await states; !(await reader.read()).done; );
        },
        until: async (isWanted: (state: State) => boolean): Promise<State> => {
          for (;;) {
            const { value } = await (await states).read();
            seen.push(value as unknown as State);
            if (isWanted(seen.at(-1)!)) return seen.at(-1)!;
          }
        },
      };
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

test.for(PLACES)(
  'a message, its reply and its end are each another version, also on another instance (%s)',
  async (place) => {
    await using chat = await openChat(place, [STALLED]);
    const watch = chat.watch();
    const empty = await watch.until(() => true);
    expect(empty).toEqual({ version: expect.any(String) as string, questions: [] });
    const sent = chat.ask({ messages: [say('u1', 'Hi')], runId: 'r1' });
    const { reply } = await watch.until((state) => state.reply !== undefined);
    await chat.provider.waitForRequest(0);
    await chat.ask({ runId: 'r1' }, '/c/stop');
    await sent;
    const ended = await watch.until((state) => state.reply === undefined);
    const read = await chat.read();
    expect(read.messages.at(-1)!.id.startsWith(reply!)).toBe(true);
    expect(read.version).toBe(ended.version);
    expect(new Set(watch.seen.map(({ version }) => version)).size).toBe(watch.seen.length);
  },
);

test.for(PLACES)('a question and its answer are each another version (%s)', async (place) => {
  await using chat = await openChat(place, [ASK, TEXT]);
  await chat.ask({ messages: [say('u1', 'Pay')], runId: 'r1' });
  const asked = await chat.read();
  const watch = chat.watch(asked.version);
  const message = asked.messages.at(-1)!;
  const parts = message.parts.map((part) =>
    'approval' in part
      ? { ...part, state: 'approval-responded', approval: { ...part.approval, approved: true } }
      : part,
  );
  await chat.ask({ messages: [{ ...message, parts }] });
  // The answer is one version, the start and the end of the reply are others.
  for (let last = asked.version; last === asked.version || last !== (await chat.read()).version; )
    ({ version: last } = await watch.until(({ version }) => version !== last));
  const { messages } = await chat.read();
  expect(messages).toHaveLength(2);
  expect(JSON.stringify(messages)).toContain('paid');
});

test('a page that knows the version is told nothing before it changes, and one that does not at once', async () => {
  await using chat = await openChat('memory', [TEXT]);
  await chat.ask({ messages: [say('u1', 'Hi')] });
  const { version } = await chat.read();
  const [knows, asks] = [chat.watch(version), chat.watch('of another release')];
  expect(await asks.until(() => true)).toMatchObject({ version });
  expect(knows.seen).toEqual([]);
  await chat.remove();
  expect((await knows.until(() => true)).version).not.toBe(version);
  expect(knows.seen).toHaveLength(1);
});

test('another user is told nothing about a chat of the same name', async () => {
  await using chat = await openChat('memory', [TEXT, TEXT]);
  const mallory = chat.watch(undefined, { 'x-user': 'mallory' });
  const empty = await mallory.until(() => true);
  const before = await chat.read();
  await chat.ask({ messages: [say('u1', 'Hi')] });
  const own = await chat.watch().until(() => true);
  expect(own.version).not.toBe(before.version);
  expect(mallory.seen).toEqual([empty]);
});

test.for([
  ['another principal than the page was opened by', { 'whoa-principal': 'bob' }, 403],
  ['a page of another origin', { origin: 'https://evil.test' }, 403],
] as const)('%s is refused', async ([, headers, status]) => {
  await using chat = await openChat('memory', []);
  expect(await chat.watch(undefined, headers).status()).toBe(status);
});

test.for(['x'.repeat(10_000), '\0', '../../c', '{"version":1}', ' '])(
  'an invalid version is an unknown one (%#)',
  async (after) => {
    await using chat = await openChat('memory', []);
    expect(await chat.watch(after).until(() => true)).toMatchObject({ questions: [] });
  },
);

test('pages that watch take no place of replies', async () => {
  await using chat = await openChat('memory', [TEXT]);
  const watches = Array.from({ length: 101 }, () => chat.watch());
  await Promise.all(watches.slice(0, 100).map((watch) => watch.until(() => true)));
  expect(await watches.at(-1)!.status()).toBe(429);
  expect(await chat.ask({ messages: [say('u1', 'Hi')] })).toContain('Done.');
});

test('what an application writes into its own database is seen when it says so', async () => {
  await using chat = await openChat('own database', [TEXT]);
  await chat.ask({ messages: [say('u1', 'Hi')] });
  const before = await chat.read();
  const watch = chat.watch(before.version);
  chat.db.write('c', say('note', 'From another part of the application'));
  for (let count = 0; count < 2; count++) await chat.touch();
  const { version } = await watch.until((state) => state.version !== before.version);
  const after = await chat.read();
  expect(after.messages).toHaveLength(3);
  expect(await chat.watch().until(() => true)).toMatchObject({ version: after.version });
  expect(version).not.toBe(before.version);
});

test('a page that leaves ends its watch, before it begins, twice and in between', async () => {
  await using chat = await openChat('memory', []);
  const [left, watching] = [chat.watch(), chat.watch()];
  left.leave();
  left.leave();
  await left.ended();
  await watching.until(() => true);
  watching.leave();
  await watching.ended();
});
