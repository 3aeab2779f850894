// A chat over a real WebSocket: the AI SDK's own transport against a real HTTP server, with an agent and with `streamText`.
import { once } from 'node:events';
import type { Answer } from '@whoa/ai-sdk/testing';
import { type UIMessage, WebSocketChatTransport } from 'ai';
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { CALL, KINDS, type Kind, read, say, stage as stageAny, wordsOf } from '../../../../test/server/chat-stage.ts';
import { createChatHandler } from '../chat/chat-handler.ts';
import { StoppableWebSocketChatTransport } from '../client/stoppable-web-socket-chat-transport.ts';
import { listen } from '../listen.ts';

interface ReceivedFrame {
  readonly type: string;
  readonly requestId: string;
  readonly code?: string;
  readonly sequence?: number;
  readonly chunk?: { readonly type: string };
  readonly receipt?: { readonly answer: string };
}

async function stage(kind: Kind, script: readonly Answer[]) {
  const fixture = await stageAny(kind, script, createChatHandler);
  const listening = await listen(fixture.handler);
  const url = `${listening.url.replace('http', 'ws')}/api/chat`;
  return {
    ...fixture,
    url,
    async [Symbol.asyncDispose]() {
      await listening[Symbol.asyncDispose]();
      await fixture[Symbol.asyncDispose]();
    },
  };
}

/** A page: a transport over a socket of its own. */
function openPage(url: string, { user = 'ada', Transport = StoppableWebSocketChatTransport<UIMessage> } = {}) {
  const sockets: WebSocket[] = [];
  class PageSocket extends WebSocket {
    constructor(address: string | URL, protocols?: string | string[]) {
      super(address, protocols, { headers: { 'x-user': user } });
      sockets.push(this);
    }
  }
  const transport = new Transport({ url, webSocket: PageSocket as never });
  return {
    transport,
    sockets,
    send: (chatId: string, message: UIMessage, more: { abortSignal?: AbortSignal; body?: object } = {}) =>
      transport.sendMessages({
        trigger: 'submit-message',
        chatId,
        messageId: undefined,
        messages: [message],
        abortSignal: undefined,
        ...more,
      }),
    [Symbol.dispose]: () => transport.close(),
  };
}

/** A socket that is told frame by frame what to send. */
async function openRaw(url: string, headers: Record<string, string> = { 'x-user': 'ada' }) {
  const socket = new WebSocket(url, { headers });
  const frames: ReceivedFrame[] = [];
  const waiting = new Set<() => void>();
  socket.on('message', (data: Buffer) => {
    frames.push(JSON.parse(data.toString()) as ReceivedFrame);
    for (const wake of waiting) wake();
  });
  await once(socket, 'open');
  return {
    socket,
    frames,
    send: (frame: object) => socket.send(JSON.stringify(frame)),
    async waitFor(matches: (frame: ReceivedFrame) => boolean): Promise<ReceivedFrame> {
      for (;;) {
        const found = frames.find(matches);
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => waiting.add(resolve));
      }
    },
    [Symbol.dispose]: () => socket.terminate(),
  };
}

const sendFrame = (requestId: string, message: UIMessage, runId?: string) => ({
  type: 'send',
  requestId,
  id: 'c',
  trigger: 'submit-message',
  messages: [message],
  headers: {},
  body: { runId },
});

describe.each(KINDS)('%s', (kind) => {
  test('answers, and the next message knows it', async () => {
    await using fixture = await stage(kind, [CALL, { parts: [{ text: '42.' }] }, { parts: [{ text: 'As I said.' }] }]);
    using page = openPage(fixture.url);
    fixture.hands.release.resolve('forty-two');
    const first = await read(await page.send('c', say('u1', 'What is it?')));
    expect(first.stopped).toBeUndefined();
    expect(wordsOf(first.message)).toBe('Let me see. 42.');
    const second = await read(await page.send('c', say('u2', 'And?')));
    expect(wordsOf(second.message)).toBe('As I said.');
    expect(page.sockets).toHaveLength(1);
    const sent = JSON.stringify(fixture.provider.requests.at(-1)!.body);
    for (const words of ['What is it?', 'forty-two', '42.', 'And?']) expect(sent).toContain(words);
  });

  test('a stop stops the call and keeps what was said; the next message knows the truth', async () => {
    await using fixture = await stage(kind, [CALL, { parts: [{ text: 'Sorry.' }] }]);
    using page = openPage(fixture.url);
    const reading = read(await page.send('c', say('u1', 'Go')));
    await fixture.hands.started.promise;
    await page.transport.stop('c');
    const first = await reading;
    expect(first.stopped).toBe('user');
    expect(wordsOf(first.message)).toBe('Let me see. ');
    const { tasks } = await fixture.store.list({ tenant: 'ada' });
    expect((await fixture.store.get(tasks[0]!))?.outcome?.reason).toMatchObject({ by: 'ada', via: 'websocket' });
    const second = await read(await page.send('c', say('u2', 'Why?')));
    expect(wordsOf(second.message)).toBe('Sorry.');
    expect(JSON.stringify(fixture.provider.requests.at(-1)!.body)).toContain('Interrupted (user)');
  });

  test('the abort of the SDK and a socket that is cut stop nothing, and a page that comes back reads all of it', async () => {
    await using fixture = await stage(kind, [CALL, { parts: [{ text: 'Done.' }] }]);
    using page = openPage(fixture.url, { Transport: WebSocketChatTransport<UIMessage> as never });
    const names: (string | undefined)[] = [];
    const note = (chunk: { type: string; messageId?: string }) => chunk.type === 'start' && names.push(chunk.messageId);
    const leaving = new AbortController();
    const gone = read(await page.send('c', say('u1', 'Go'), { abortSignal: leaving.signal }), note);
    await fixture.hands.started.promise;
    leaving.abort();
    await gone;
    const cut = read((await page.transport.reconnectToStream({ chatId: 'c' }))!, (chunk) => {
      note(chunk);
      if (chunk.type === 'text-delta') page.sockets[0]!.terminate();
    });
    await expect(cut).rejects.toThrow('connection closed');
    const back = read((await page.transport.reconnectToStream({ chatId: 'c' }))!, note);
    fixture.hands.release.resolve('later');
    const { message, stopped } = await back;
    expect(stopped).toBeUndefined();
    expect(wordsOf(message)).toBe('Let me see. Done.');
    expect(page.sockets).toHaveLength(2);
    expect(names).toHaveLength(3);
    expect(new Set(names).size).toBe(1);
    expect(await page.transport.reconnectToStream({ chatId: 'c' })).toBeNull();
  });

  test('a stop that overtakes its message counts, and the reply under way is not touched', async () => {
    await using fixture = await stage(kind, [CALL, { parts: [{ text: 'Done.' }] }]);
    using page = openPage(fixture.url);
    const running = read(await page.send('c', say('u1', 'Go')));
    await fixture.hands.started.promise;
    using raw = await openRaw(fixture.url);
    raw.send({ type: 'stop', requestId: 's', id: 'c', runId: 'early' });
    expect(await raw.waitFor(({ type }) => type === 'receipt')).toMatchObject({ receipt: { answer: 'noted' } });
    raw.send(sendFrame('r', say('u2', 'Never'), 'early'));
    await raw.waitFor(({ type }) => type === 'end');
    const seen = raw.frames.filter(({ requestId }) => requestId === 'r');
    expect(seen.map(({ type, chunk }) => chunk?.type ?? type)).toEqual(['start', 'start', 'abort', 'end']);
    expect(seen.flatMap(({ sequence }) => sequence ?? [])).toEqual([0, 1]);
    fixture.hands.release.resolve('done');
    expect((await running).stopped).toBeUndefined();
  });

  test('a second page sees that it was stopped', async () => {
    await using fixture = await stage(kind, [CALL]);
    using first = openPage(fixture.url);
    using second = openPage(fixture.url);
    const reading = read(await first.send('c', say('u1', 'Go')));
    await fixture.hands.started.promise;
    const watching = read((await second.transport.reconnectToStream({ chatId: 'c' }))!);
    await first.transport.stop('c');
    expect((await reading).stopped).toBe('user');
    expect((await watching).stopped).toBe('user');
  });

  test('a page that has lost its socket can still stop what it read', async () => {
    await using fixture = await stage(kind, [CALL]);
    using page = openPage(fixture.url);
    const reading = read(await page.send('c', say('u1', 'Go')));
    await fixture.hands.started.promise;
    page.sockets[0]!.terminate();
    await expect(reading).rejects.toThrow('connection closed');
    using other = openPage(fixture.url);
    const watching = read((await other.transport.reconnectToStream({ chatId: 'c' }))!);
    await page.transport.stop('c');
    expect((await watching).stopped).toBe('user');
  });

  test('a user sees only their own chats', async () => {
    await using fixture = await stage(kind, [CALL, { parts: [{ text: 'Done.' }] }]);
    using page = openPage(fixture.url);
    const running = read(await page.send('c', say('u1', 'Go')));
    await fixture.hands.started.promise;
    using other = openPage(fixture.url, { user: 'eve' });
    expect(await other.transport.reconnectToStream({ chatId: 'c' })).toBeNull();
    using raw = await openRaw(fixture.url, { 'x-user': 'eve' });
    raw.send({ type: 'stop', requestId: 's', id: 'c' });
    expect(await raw.waitFor(({ type }) => type === 'receipt')).toMatchObject({ receipt: { answer: 'idle' } });
    fixture.hands.release.resolve('done');
    expect((await running).stopped).toBeUndefined();
  });
});

test('who may not is refused before the handshake', async () => {
  await using fixture = await stage('agent', []);
  const status = async (url: string, headers: Record<string, string>): Promise<number> => {
    const socket = new WebSocket(url, { headers });
    socket.on('error', () => {});
    const [, response] = (await once(socket, 'unexpected-response')) as [unknown, { statusCode: number }];
    socket.terminate();
    return response.statusCode;
  };
  expect(await status(fixture.url, {})).toBe(401);
  expect(await status(fixture.url, { 'x-user': 'ada', origin: 'http://evil.test' })).toBe(403);
  expect(await status(`${fixture.url}/elsewhere`, { 'x-user': 'ada' })).toBe(404);
  using raw = await openRaw(fixture.url, {
    'x-user': 'ada',
    origin: fixture.url.replace('ws', 'http').replace('/api/chat', ''),
  });
  expect(raw.socket.readyState).toBe(WebSocket.OPEN);
});

test('a server that stops does not wait for a handshake, nor for sockets', async () => {
  const [asked, known] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
  const reply = () => ({ toUIMessageStream: () => new ReadableStream() });
  const authenticate = (request: Request) => {
    if (request.headers.has('x-user')) return 'ada';
    asked.resolve();
    return known.promise;
  };
  await using handler = createChatHandler({ authenticate, reply });
  const listening = await listen(handler);
  const url = `${listening.url.replace('http', 'ws')}/api/chat`;
  using raw = await openRaw(url);
  const pending = new WebSocket(url);
  const [closed, failed] = [once(raw.socket, 'close'), once(pending, 'error').catch(() => {})];
  await asked.promise;
  await listening[Symbol.asyncDispose]();
  await Promise.all([closed, failed]);
  known.resolve('eve');
});
