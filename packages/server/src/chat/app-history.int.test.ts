// Chats in the application's own database: a real SQLite, on each store.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createOpenAI } from '@ai-sdk/openai';
import { type ScriptedResponse, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createTaskStore } from '@whoa/tasks';
import { streamText, tool, type UIMessage } from 'ai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { openDatabase, type Save } from '../../../../test/server/app-database.ts';
import { CALL, read, say, toReplyText } from '../../../../test/server/chat-harness.ts';
import { type BorrowedServer, borrowPostgres } from '../../../../test/servers/borrow.ts';
import { startProgram } from '../../../../test/tasks/child.ts';
import { createChatHandler } from './chat-handler.ts';
import { StoppableChatTransport } from './client/stoppable-chat-transport.ts';

const HELLO: ScriptedResponse = { parts: [{ text: 'Hello.' }] };
const AGAIN: ScriptedResponse = { parts: [{ text: 'Hello again.' }] };

const INSTANCE = join(import.meta.dirname, '../../../../test/server/children/history-instance.ts');

let chats = 0;

async function startProvider(script: readonly ScriptedResponse[]) {
  const provider = await startLoopbackProvider({ script: [...script] });
  return Object.assign(provider, { [Symbol.asyncDispose]: () => provider.close() });
}

async function openSite(url: string | undefined, script: readonly ScriptedResponse[], timeoutMs?: number) {
  const stack = new AsyncDisposableStack();
  const id = `h${++chats}`;
  const provider = await startLoopbackProvider({ script: [...script] });
  stack.defer(() => provider.close());
  const db = stack.use(openDatabase(undefined, timeoutMs));
  const store = stack.use(createTaskStore(url ?? 'memory:'));
  const log: string[] = [];
  const [started, released] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
  const work = tool({
    inputSchema: z.object({ q: z.string().optional() }),
    execute: (_, { abortSignal }) => {
      started.resolve();
      abortSignal!.addEventListener('abort', () => released.reject(new Error('stopped')));
      return released.promise;
    },
  });
  const handler = stack.use(
    createChatHandler({
      store,
      history: db.history,
      authenticate: () => 'ada',
      tools: { work },
      hooks: { 'hook-error': ({ hook, error }) => log.push(`${hook}: ${(error as Error).message}`) },
      reply: (turn) =>
        streamText({ model: createOpenAI({ baseURL: provider.url, apiKey: 'none' }).chat('gpt-4o'), ...turn }),
    }),
  );
  const fetch = (path: string, init?: RequestInit) =>
    handler.fetch(new Request(`http://app.test/api/chat${path}`, init));
  const transport = new StoppableChatTransport({
    api: 'http://app.test/api/chat',
    fetch: ((to: string, init: RequestInit) => handler.fetch(new Request(to, init))) as typeof globalThis.fetch,
  });
  const send = async (message: UIMessage, trigger: 'submit-message' | 'regenerate-message' = 'submit-message') =>
    transport.sendMessages({ trigger, chatId: id, messageId: undefined, abortSignal: undefined, messages: [message] });
  return {
    id,
    provider,
    db,
    store,
    log,
    started,
    released,
    transport,
    fetch,
    send,
    ask: async (...said: Parameters<typeof send>) => read(await send(...said)),
    kept: () => db.messages(id).map((message) => `${message.role}: ${toReplyText(message)}`),
    shown: async () => (await (await fetch(`/${id}/messages`)).json()) as UIMessage[],
    tasks: async () => (await store.list({ tenant: 'ada', conversation: id })).tasks,
    told: () => JSON.stringify(provider.requests.at(-1)?.body),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

const getIds = ({ messages }: Save) => messages.map(({ id }) => id);
const getTypes = (message: UIMessage | undefined) => message?.parts.map(({ type }) => type);
type Fault = () => unknown;

const conflict: Fault = () => 'conflict';
const fail: Fault = () => Promise.reject(new Error('disk full'));
const hang: Fault = () => new Promise(() => {});
const nonsense: Fault = () => 'ok';

describe.each(['memory', 'postgres'] as const)('%s', (kind) => {
  let server: BorrowedServer | undefined;
  beforeAll(async () => {
    if (kind !== 'memory') server = await borrowPostgres();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());
  const open = (script: readonly ScriptedResponse[], timeoutMs?: number) => openSite(server?.url, script, timeoutMs);

  test('the message is saved when it is admitted and the reply at its end; the store keeps neither', async () => {
    await using site = await open([CALL, HELLO, AGAIN]);
    const reading = read(await site.send(say('u1', 'Hi')));
    await site.started.promise;
    expect(site.kept()).toEqual(['user: Hi']);
    site.released.resolve('done');
    const { message } = await reading;
    expect(site.kept()).toEqual(['user: Hi', 'assistant: Let me see. Hello.']);
    expect(site.db.messages(site.id)[1]!.parts).toEqual(message!.parts);
    await site.ask(say('u2', 'Again'));
    expect(site.told()).toContain('Let me see. ');
    expect(site.db.saves.map(({ expectedVersion, removedIds }) => [expectedVersion, removedIds])).toEqual(
      [0, 1, 2, 3].map((version) => [version, []]),
    );
    expect(await site.shown()).toEqual(site.db.messages(site.id));
    expect((await site.store.conversation({ tenant: 'ada', conversation: site.id }))?.history).toEqual([]);
    expect(site.log).toEqual([]);
  });

  test('a chat that the application already has is continued', async () => {
    await using site = await open([HELLO]);
    site.db.write(site.id, say('old', 'My name is Ada'));
    await site.ask(say('u1', 'Hi'));
    expect(site.told()).toContain('My name is Ada');
    expect(site.kept()).toHaveLength(3);
  });

  test('a stopped reply is saved up to the stop, with its report', async () => {
    await using site = await open([CALL]);
    const reading = read(await site.send(say('u1', 'Hi')));
    await site.started.promise;
    await site.transport.stop(site.id);
    const { message } = await reading;
    expect(getTypes(message)).toContain('data-stop-report');
    expect(getTypes(site.db.messages(site.id)[1])).toEqual(getTypes(message));
    expect(await site.shown()).toEqual(site.db.messages(site.id));
  });

  test('a stop while the reply is being saved: it is saved, and ends as cancelled', async () => {
    await using site = await open([HELLO]);
    const [saving, go] = [Promise.withResolvers<void>(), Promise.withResolvers<undefined>()];
    site.db.faults.save.push(
      () => undefined,
      () => {
        saving.resolve();
        return go.promise;
      },
    );
    const reading = read(await site.send(say('u1', 'Hi')));
    await saving.promise;
    expect(await site.transport.stop(site.id)).toMatchObject({ result: 'accepted' });
    go.resolve(undefined);
    await reading;
    expect(site.kept()).toEqual(['user: Hi', 'assistant: Hello.']);
    expect(await site.tasks()).toMatchObject([{ status: 'cancelled' }]);
    expect(site.log).toEqual([]);
  });

  test('a message that is stopped before its chat is loaded is saved without a reply', async () => {
    await using site = await open([HELLO]);
    const [loading, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    // The first load answers the request, the second is the task's.
    site.db.faults.load.push(
      () => undefined,
      () => {
        loading.resolve();
        return go.promise;
      },
    );
    const reading = read(await site.send(say('u1', 'Hi')));
    await loading.promise;
    await site.transport.stop(site.id);
    go.resolve();
    await reading;
    expect(site.kept()).toEqual(['user: Hi']);
    expect(site.provider.requests).toEqual([]);
  });

  test.for([
    ['hangs', hang, 'save: it took more than 100 ms'],
    ['throws', fail, 'disk full'],
    ['answers nonsense', nonsense, 'to return { version }'],
    ['refuses twice', conflict, 'another writer has changed the chat'],
  ] as const)('a save that %s: the reply is reported as unsaved to page and log', async ([, fault, why]) => {
    await using site = await open([HELLO, AGAIN], 100);
    site.db.faults.save.push(() => undefined, fault, fault);
    const { message } = await site.ask(say('u1', 'Hi'));
    expect([toReplyText(message), getTypes(message)!.at(-1)]).toEqual(['Hello.', 'data-unsaved']);
    expect(JSON.stringify(message)).not.toContain(why);
    expect(site.log).toEqual([expect.stringContaining(why)]);
    expect(await site.tasks()).toMatchObject([
      { status: 'success', outcome: { result: { unsaved: expect.stringContaining(why) as string } } },
    ]);
    expect(site.kept()).toEqual(['user: Hi']);
    await site.ask(say('u2', 'Again'));
    expect(site.kept()).toEqual(['user: Hi', 'user: Again', 'assistant: Hello again.']);
  });

  test('a stop does not wait for a save that hangs longer than it may take', async () => {
    await using site = await open([CALL], 100);
    site.db.faults.save.push(() => undefined, hang, hang);
    const reading = read(await site.send(say('u1', 'Hi')));
    await site.started.promise;
    await site.transport.stop(site.id);
    expect(getTypes((await reading).message)).toEqual(expect.arrayContaining(['data-stop-report', 'data-unsaved']));
    expect(await site.tasks()).toMatchObject([{ status: 'cancelled' }]);
  });

  test('a save whose answer was lost is repeated, and changes nothing', async () => {
    await using site = await open([HELLO]);
    const lost = (change: Save) => {
      const { messages } = change;
      for (const message of messages) site.db.write(site.id, message);
      return fail();
    };
    site.db.faults.save.push(() => undefined, lost);
    await site.ask(say('u1', 'Hi'));
    expect(site.kept()).toEqual(['user: Hi', 'assistant: Hello.']);
    expect(site.log).toEqual([]);
  });

  test('if another writer is faster, its message is kept and the turn is appended', async () => {
    await using site = await open([HELLO]);
    const race = (id: string) => () => site.db.write(site.id, say(id, `note ${id}`));
    site.db.faults.save.push(race('n1'), () => undefined, race('n2'));
    await site.ask(say('u1', 'Hi'));
    expect(site.kept().toSorted()).toEqual(['assistant: Hello.', 'user: Hi', 'user: note n1', 'user: note n2']);
    expect(site.told()).toContain('note n1');
    expect(site.log).toEqual([]);
  });

  test('a message that could not be saved at first is saved with its reply', async () => {
    await using site = await open([HELLO]);
    site.db.faults.save.push(fail, fail);
    await site.ask(say('u1', 'Hi'));
    expect(site.kept()).toEqual(['user: Hi', 'assistant: Hello.']);
    expect(site.log).toEqual(['history: disk full']);
  });

  test.for([
    ['throws', fail],
    ['hangs', hang],
  ] as const)('a load that %s is a 503, and nothing is admitted', async ([, fault]) => {
    await using site = await open([HELLO], 100);
    site.db.faults.load.push(fault);
    const body = JSON.stringify({ id: site.id, messages: [say('u1', 'Hi')] });
    const refused = await site.fetch('', { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    expect([refused.status, await refused.json()]).toMatchObject([503, { error: { code: 'history-unavailable' } }]);
    expect([await site.tasks(), site.provider.requests, site.kept()]).toEqual([[], [], []]);
    expect(site.log).toHaveLength(1);
    await site.ask(say('u1', 'Hi'));
    expect(site.kept()).toHaveLength(2);
  });

  test('a load that fails after that ends the reply as failed, and the page is notified', async () => {
    await using site = await open([HELLO], 100);
    site.db.faults.load.push(() => undefined, fail);
    const { chunks } = await site.ask(say('u1', 'Hi'));
    expect(chunks.map(({ type }) => type)).toEqual(['start', 'data-unsaved', 'finish', 'error']);
    expect(site.provider.requests).toEqual([]);
  });

  test('a regenerate removes the old reply in the same save that keeps the message', async () => {
    await using site = await open([HELLO, AGAIN]);
    await site.ask(say('u1', 'Hi'));
    const [, old] = site.db.messages(site.id);
    await site.ask(say('u1', 'Hi'), 'regenerate-message');
    expect(site.kept()).toEqual(['user: Hi', 'assistant: Hello again.']);
    expect(site.db.saves.map((save) => [getIds(save).length, save.removedIds])).toEqual([
      [1, []],
      [2, []],
      [1, [old!.id]],
      [2, []],
    ]);
    expect(site.told()).not.toContain('Hello.');
  });

  test.for([
    ['refuses', conflict],
    ['throws', fail],
  ] as const)('a regenerate that the database %s truncates nothing, and there is no reply', async ([, fault]) => {
    await using site = await open([HELLO, AGAIN]);
    await site.ask(say('u1', 'Hi'));
    const before = site.db.messages(site.id);
    site.db.faults.save.push(fault, fault);
    const { chunks } = await site.ask(say('u1', 'Hi'), 'regenerate-message');
    expect(chunks.map(({ type }) => type)).toEqual(['start', 'data-unsaved', 'finish', 'error']);
    expect(site.db.messages(site.id)).toEqual(before);
    expect(await site.shown()).toEqual(before);
    expect([site.provider.requests.length, site.log.length]).toEqual([1, 1]);
  });

  test('a rollback removes the turn; one that the database refuses is a 409 and removes nothing', async () => {
    await using site = await open([HELLO, { parts: [{ text: ['a ', { stall: true }] }] }]);
    await site.ask(say('u1', 'Hi'));
    const streaming = Promise.withResolvers<void>();
    const reading = read(await site.send(say('u2', 'Go')), ({ type }) => type === 'text-delta' && streaming.resolve());
    await streaming.promise;
    site.db.faults.save.push(() => undefined, conflict, conflict);
    expect(await site.transport.stop(site.id, { rollback: true })).toMatchObject({ rolledBack: false, unsaved: true });
    await reading;
    expect(site.kept()).toEqual(['user: Hi', 'assistant: Hello.', 'user: Go', 'assistant: a ']);
    const task = (await site.tasks()).find(({ agent }) => agent === 'whoa-chat-reply')!;
    const again = await site.fetch(`/${site.id}/stop`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ messageId: task.id, rollback: true }),
    });
    expect([again.status, await again.json()]).toMatchObject([200, { rolledBack: true }]);
    expect(site.kept()).toEqual(['user: Hi', 'assistant: Hello.']);
    expect(site.db.saves.at(-1)!.removedIds).toEqual(['u2', task.id]);
  });
});

describe('on Postgres, after a crash', () => {
  test.for([
    ['before the message was saved', '1', 'before', 1],
    ['after the message was saved', '1', 'after', 1],
    ['between the end of the reply and its save', '2', 'before', 0],
    ['between the save of the reply and the end of its task', '2', 'after', 0],
  ] as const)('an instance is killed %s: another one saves the turn, once', async ([, at, when, replies]) => {
    await using server = await borrowPostgres();
    await using provider = await startProvider([HELLO]);
    const folder = mkdtempSync(join(tmpdir(), 'whoa-history-'));
    const file = join(folder, 'app.db');
    await using child = startProgram(INSTANCE, [server.url, provider.url, file, 'k', at, when]);
    await child.ended;
    expect(child.process.signalCode).toBe('SIGKILL');
    expect(provider.requests).toHaveLength(1 - replies);
    using db = openDatabase(file);
    await using handler = createChatHandler({
      store: server.url,
      leaseMs: 1_000,
      authenticate: () => 'ada',
      history: db.history,
      reply: (turn) =>
        streamText({ model: createOpenAI({ baseURL: provider.url, apiKey: 'none' }).chat('gpt-4o'), ...turn }),
    });
    const stream = await handler.fetch(new Request('http://app.test/api/chat/k/stream'));
    expect(await stream.text()).toContain('Hello.');
    expect(db.messages('k').map(toReplyText)).toEqual(['Hi', 'Hello.']);
    expect(provider.requests).toHaveLength(1);
    expect(db.saves.length).toBeGreaterThan(0);
    rmSync(folder, { recursive: true });
  });
});

test('history needs a loop of your own, and both functions', () => {
  const options = { store: 'memory', authenticate: () => 'ada' };
  const history = openDatabase().history;
  expect(() => createChatHandler({ ...options, agent: 'elsewhere', history })).toThrow(/^history: /);
  const reply = () => ReadableStream.from([]);
  expect(() => createChatHandler({ ...options, reply, history: { load: history.load } as never })).toThrow(
    /^history: /,
  );
});
