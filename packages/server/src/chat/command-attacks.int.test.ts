// Attacks on the commands of a page and on the ids that it chooses: of runs, of messages and of chats. Each ends with what the
// server has, and with what others have.
/* oxlint-disable typescript/no-deprecated -- what applications have */
import { createOpenAI } from '@ai-sdk/openai';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createMemoryStore } from '@whoa/tasks';
import { streamText, type UIMessage } from 'ai';
import { afterEach, describe, expect, test } from 'vitest';
import { read, say, toReplyText } from '../../../../test/server/chat-harness.ts';
import { createChatHandler } from './chat-handler.ts';
import { CommandStorage } from './client/command-storage.ts';
import { StoppableChatTransport } from './client/stoppable-chat-transport.ts';

const API = 'http://app.test/api/chat';

interface Asked {
  readonly user?: string;
  readonly headers?: Record<string, string>;
}

async function openSite() {
  const stack = new AsyncDisposableStack();
  const provider = await startLoopbackProvider({
    script: ({ body }) => {
      const last = JSON.stringify((body['messages'] as readonly object[]).at(-1));
      if (last.includes('stall')) return { parts: [{ text: [{ stall: true }] }] };
      return { parts: [{ text: last.includes('long') ? ['long ', { stall: true }] : ['Hello.'] }] };
    },
  });
  stack.defer(() => provider.close());
  const handler = stack.use(
    createChatHandler({
      store: stack.use(createMemoryStore()),
      authenticate: (request) => request.headers.get('x-user'),
      reply: (turn) =>
        streamText({ model: createOpenAI({ baseURL: provider.url, apiKey: 'x' }).chat('gpt-4o'), ...turn }),
    }),
  );
  const ask = (path: string, body?: unknown, { user = 'ada', headers = {} }: Asked = {}) =>
    handler.fetch(
      new Request(`${API}${path}`, {
        headers: { 'content-type': 'application/json', 'x-user': user, ...headers },
        ...(body !== undefined && { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) }),
      }),
    );
  const send = (message: UIMessage, runId?: string, { id = 'c', ...asked }: Asked & { id?: string } = {}) =>
    ask('', { id, messages: [message], ...(runId !== undefined && { runId }) }, asked);
  return {
    provider,
    ask,
    send,
    stop: async (body: unknown, asked?: Asked & { id?: string }) =>
      (await (await ask(`/${asked?.id ?? 'c'}/stop`, body, asked)).json()) as { readonly result: string },
    /** Sends a message whose reply does not end, and waits until it has begun. */
    async begin(runId: string, asked?: Asked & { id?: string }): Promise<void> {
      const response = await send(say(`${runId}-said`, 'long'), runId, asked);
      const reader = response.body!.getReader();
      for (let text = ''; !text.includes('long '); )
        text += new TextDecoder().decode((await reader.read()).value as Uint8Array | undefined);
      await reader.cancel();
    },
    shown: async (user = 'ada', id = 'c') =>
      (await (await ask(`/${id}/messages`, undefined, { user })).json()) as UIMessage[],
    isReplying: async (user = 'ada', id = 'c') => {
      const { status, body } = await ask(`/${id}/stream`, undefined, { user });
      await body?.cancel();
      return status === 200;
    },
    /** A page, whose requests reach the server as long as `isDown` is not set. */
    open(network: { isDown: boolean } = { isDown: false }) {
      const fetch = async (url: string, init: RequestInit = {}): Promise<Response> => {
        if (network.isDown) throw new TypeError('fetch failed');
        const headers = Object.fromEntries(new Headers(init.headers));
        return handler.fetch(new Request(url, { ...init, headers: { ...headers, 'x-user': 'ada' } }));
      };
      return new StoppableChatTransport({ api: API, fetch: fetch as typeof globalThis.fetch });
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

const texts = (messages: readonly UIMessage[]) => messages.map((message) => `${message.role}: ${toReplyText(message)}`);
const ONCE = ['user: Hi', 'assistant: Hello.'];

describe('ids of runs', () => {
  test.for([7, '', {}, [], 'x'.repeat(201), 'a\0b', '\ud800'])('a run that is called %j is refused', async (runId) => {
    await using site = await openSite();
    expect((await site.send(say('u1', 'Hi'), runId as string)).status).toBe(400);
    expect((await site.ask('/c/stop', { runId })).status).toBe(400);
    expect(await site.shown()).toEqual([]);
  });

  test("the name of another user's run, or of a run of another chat, stops nothing there", async () => {
    await using site = await openSite();
    await site.begin('r1');
    await site.stop({ runId: 'r1' }, { user: 'mallory' });
    await site.stop({ runId: 'r1' }, { id: 'd' });
    await site.stop({ messageId: 'r1' }, { user: 'mallory' });
    expect(await site.isReplying()).toBe(true);
    expect(await site.stop({ runId: 'r1' })).toMatchObject({ result: 'accepted' });
  });

  test('one name in two chats, and of two users, is three runs', async () => {
    await using site = await openSite();
    for (const asked of [{}, { id: 'd' }, { user: 'bob' }])
      await (await site.send(say('u1', 'Hi'), 'r1', asked)).text();
    for (const [user, id] of [
      ['ada', 'c'],
      ['ada', 'd'],
      ['bob', 'c'],
    ] as const)
      expect(texts(await site.shown(user, id))).toEqual(ONCE);
  });

  test('a name that was used is the first message, whatever comes under it', async () => {
    await using site = await openSite();
    await (await site.send(say('u1', 'Hi'), 'r1')).text();
    await (await site.send(say('u2', 'Transfer everything'), 'r1')).text();
    expect(texts(await site.shown())).toEqual(ONCE);
  });

  test('fifty requests with one name are one message with one reply', async () => {
    await using site = await openSite();
    const sent = Array.from({ length: 50 }, async () => (await site.send(say('u1', 'Hi'), 'r1')).text());
    await Promise.all(sent);
    expect(texts(await site.shown())).toEqual(ONCE);
    expect(site.provider.requests).toHaveLength(1);
  });

  test('a stop and its message, twice each, in any order: one message without a reply', async () => {
    await using site = await openSite();
    await site.stop({ runId: 'r1' });
    const send = async () => (await site.send(say('u1', 'Hi'), 'r1')).text();
    await Promise.all([send(), site.stop({ runId: 'r1' }), send(), site.stop({ runId: 'r1' })]);
    expect(texts(await site.shown())).toEqual(['user: Hi']);
    expect(site.provider.requests).toEqual([]);
  });

  test.for(['cut:r2', 'kept:r2', 'late:r2', 'message:u2'])(
    'a run that has one of our names, %s, changes nothing for other users',
    async (name) => {
      await using site = await openSite();
      await (await site.send(say('u1', 'Hi'), 'r1')).text();
      await (await site.send(say('m1', 'Mine'), name, { user: 'mallory' })).text();
      const again = { id: 'c', messages: [say('u1', 'Hi')], trigger: 'regenerate-message', runId: 'r2' };
      await (await site.ask('', again)).text();
      await (await site.send(say('u2', 'Hi'))).text();
      expect(texts(await site.shown())).toEqual([...ONCE, ...ONCE]);
    },
  );

  test('the id of a reply as the name of a run changes neither', async () => {
    await using site = await openSite();
    await (await site.send(say('u1', 'Hi'), 'r1')).text();
    const reply = (await site.shown())[1]!.id;
    await (await site.send(say('u2', 'Hi'), reply)).text();
    expect(texts(await site.shown())).toEqual([...ONCE, ...ONCE]);
  });
});

describe('ids of messages', () => {
  test('no id occurs twice: a message may not take that of the report of a stopped reply', async () => {
    await using site = await openSite();
    const sent = await site.send(say('u1', 'stall'), 'r1');
    while (site.provider.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    await site.stop({ runId: 'r1' });
    await sent.text();
    const { id } = (await site.shown())[1]!;
    expect(id).toMatch(/-stop$/);
    for (const taken of [id, id.replace(/-stop$/, ''), 'u1']) await (await site.send(say(taken, 'Hi'))).text();
    const ids = (await site.shown()).map((message) => message.id);
    expect(ids).toHaveLength(8);
    expect(new Set(ids).size).toBe(8);
  });

  test.for([7, '', {}, 'x'.repeat(201), 'a\0b', '\ud800', null])(
    'a message that is called %j is refused',
    async (id) => {
      await using site = await openSite();
      expect((await site.send({ ...say('u1', 'Hi'), id: id as string })).status).toBe(400);
      expect((await site.ask('/c/stop', { messageId: id ?? 7 })).status).toBe(400);
    },
  );

  test.for(['__proto__', 'constructor', '../c', 'c/messages', '%2e%2e', '<img src=x>', '💥'])(
    'a message, a run and a chat may be called %s',
    async (name) => {
      await using site = await openSite();
      await (await site.send(say(name, 'Hi'), name, { id: name })).text();
      expect(texts(await site.shown('ada', encodeURIComponent(name)))).toEqual(ONCE);
      expect(await site.shown()).toEqual([]);
    },
  );
});

describe('stops', () => {
  test.for(['null', '[]', '"r1"', '{"rollback":"yes"}', '{"scope":"everything"}', '{"runId":"r1","also":1}', '{', ''])(
    '%s is refused, and stops nothing',
    async (body) => {
      await using site = await openSite();
      await site.begin('r1');
      const { status } = await site.ask('/c/stop', body);
      expect([status, await site.isReplying()]).toEqual([400, true]);
    },
  );

  test('a command of another principal is refused, whoever sends it', async () => {
    await using site = await openSite();
    await site.begin('r1');
    const own = await site.ask('/c/messages');
    const headers = { 'whoa-principal': own.headers.get('whoa-principal')! };
    const stolen = await site.ask('/c/stop', { runId: 'r1' }, { user: 'mallory', headers });
    expect([stolen.status, await site.isReplying()]).toEqual([403, true]);
    const forged = await site.ask('/c/stop', { runId: 'r1' }, { headers: { 'whoa-principal': 'x' } });
    expect([forged.status, await site.isReplying()]).toEqual([403, true]);
  });

  test('a stop that comes after its reply has ended stops none that began since', async () => {
    await using site = await openSite();
    await (await site.send(say('u1', 'Hi'), 'r1')).text();
    const reply = (await site.shown())[1]!.id;
    await site.begin('r2');
    for (const late of [{ runId: 'r1' }, { messageId: reply }, { runId: 'r1', rollback: true }]) await site.stop(late);
    expect(await site.isReplying()).toBe(true);
    expect(texts(await site.shown()).slice(0, 2)).toEqual(ONCE);
  });
});

describe('what a tab has kept', () => {
  const kept = new Map<string, string>();
  const storage = {
    setItem(key: string, value: string) {
      kept.set(key, value);
      Object.assign(storage, { [key]: value });
    },
    getItem: (key: string) => kept.get(key) ?? null,
    removeItem: (key: string) => kept.delete(key) && Reflect.deleteProperty(storage, key),
  };
  const put = (): void => void Object.assign(globalThis, { sessionStorage: storage });
  afterEach(() => {
    for (const key of kept.keys()) storage.removeItem(key);
    Reflect.deleteProperty(globalThis, 'sessionStorage');
  });

  test.for(['', 'null', '7', '{}', '{"command":null}', '{"at":1,"command":{}}', '{'])(
    'an entry that is %j neither loses the others nor stops the page',
    (text) => {
      put();
      const commands = new CommandStorage(API);
      const command = { id: 'r1', kind: 'send', chatId: 'c', body: { messages: [] }, principal: 'p' } as const;
      storage.setItem(`whoa-outbox ${API} c 0`, text);
      expect(commands.add(command)).toBe(true);
      storage.setItem(`whoa-outbox ${API} c z`, text);
      expect(commands.read('c')).toEqual([command]);
    },
  );

  test('one chat does not send what another has kept, also if its name begins the same', () => {
    put();
    const commands = new CommandStorage(API);
    for (const chatId of ['c', 'c c', 'c%20c', 'C'])
      commands.add({ id: `in ${chatId}`, kind: 'send', chatId, body: {}, principal: 'p' });
    for (const chatId of ['c', 'c c', 'c%20c', 'C'])
      expect(commands.read(chatId).map(({ id }) => id)).toEqual([`in ${chatId}`]);
  });

  test('it is sent by the page that is loaded again, and once, however many find it', async () => {
    await using site = await openSite();
    put();
    const network = { isDown: false };
    const before = site.open(network);
    const about = { chatId: 'c', trigger: 'submit-message', messageId: undefined, abortSignal: undefined } as const;
    await read(await before.sendMessages({ ...about, messages: [say('u1', 'Hi')] }));
    network.isDown = true;
    before.sendMessages({ ...about, messages: [say('u2', 'Hi')] }).catch(() => {});
    expect(before.pending('c')).toMatchObject([{ kind: 'send', isKept: true }]);
    const pages = [1, 2, 3].map(() => site.open());
    for (const page of pages) page.open('c');
    while (pages.some((page) => page.pending('c').length > 0)) await new Promise((resolve) => setImmediate(resolve));
    await Promise.all(
      pages.map(async (page) => (await page.reconnectToStream({ chatId: 'c' }))?.pipeTo(new WritableStream())),
    );
    expect(texts(await site.shown())).toEqual([...ONCE, ...ONCE]);
    before.giveUp(before.pending('c')[0]!.id);
  });
});
