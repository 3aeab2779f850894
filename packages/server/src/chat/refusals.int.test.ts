// What a chat does not take: too many messages at once, and users who may not, over HTTP and over WebSockets.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createMemoryStore } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { CALL, say, stage } from '../../../../test/server/chat-stage.ts';
import { listen } from '../listen.ts';
import { type ChatHandler, createChatHandler } from './chat-handler.ts';

const ask = (handler: ChatHandler, message: string) =>
  handler.fetch(
    new Request('http://app.test/api/chat', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-user': 'ada' },
      body: JSON.stringify({ id: 'c', messages: [say(message, message)] }),
    }),
  );

/** Sends the same over a socket; resolves with the answer to it. */
async function askOverSocket(handler: ChatHandler): Promise<unknown> {
  await using listening = await listen(handler);
  const socket = new WebSocket(`${listening.url.replace('http', 'ws')}/api/chat`, { headers: { 'x-user': 'ada' } });
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'send', requestId: 'r', id: 'c', messages: [say('m', 'm')], headers: {} }));
  const [data] = (await once(socket, 'message')) as [Buffer];
  socket.terminate();
  return JSON.parse(data.toString());
}

test('a chat that rejects answers 409 while a reply is under way, and takes the next message after it', async () => {
  const script = [CALL, { parts: [{ text: 'Done.' }] }, { parts: [{ text: 'Next.' }] }];
  await using fixture = await stage('agent', script, (options) => createChatHandler({ ...options, policy: 'reject' }));
  const first = await ask(fixture.handler, 'go');
  await fixture.hands.started.promise;
  const second = await ask(fixture.handler, 'too early');
  expect(second.status).toBe(409);
  expect(await second.json()).toMatchObject({ error: { code: 'rejected' } });
  expect(await askOverSocket(fixture.handler)).toMatchObject({ type: 'error', requestId: 'r', code: 'rejected' });
  fixture.hands.release.resolve('done');
  expect(await first.text()).toContain('Done.');
  expect(await (await ask(fixture.handler, 'next')).text()).toContain('Next.');
});

test('a store in which too much waits answers 429, with the time to wait, and makes room again', async () => {
  await using store = createMemoryStore({ maxReady: 1 });
  const parts = { store, authenticate: (request: Request) => request.headers.get('x-user'), agent: 'elsewhere' };
  await using handler = createChatHandler({ ...parts, policy: 'queue' });
  await store.create({ tenant: 'ada', agent: 'elsewhere', input: 'waits', key: 'first' });
  const refused = await ask(handler, 'go');
  expect(refused.status).toBe(429);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(await refused.json()).toMatchObject({ error: { code: 'full' } });
  expect(await askOverSocket(handler)).toMatchObject({ type: 'error', requestId: 'r', code: 'full' });
  await store.cancel((await store.find({ tenant: 'ada', key: 'first' }))!);
  const taken = await ask(handler, 'go');
  expect(taken.status).toBe(200);
  await taken.body!.cancel();
});

test('a socket that is open already is closed with 1008 if its user may not, whatever it sent', async () => {
  const identify = { nobody: () => null, broken: () => Promise.reject(new Error('no database')), ada: () => 'ada' };
  const reply = () => ({ toUIMessageStream: () => new ReadableStream() });
  await using handler = createChatHandler({
    authenticate: (request) => identify[request.headers.get('x-user') as keyof typeof identify](),
    hooks: { 'hook-error': () => {} },
    reply,
  });
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  server.on('connection', (socket, { headers }) =>
    handler.webSocket(
      socket,
      new Request('http://app.test/api/chat', {
        headers: { 'x-user': String(headers['x-user']), origin: headers.origin ?? 'http://app.test' },
      }),
    ),
  );
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const open = (user: string, origin = 'http://app.test') =>
    new WebSocket(url, { headers: { 'x-user': user }, origin });
  for (const socket of [open('nobody'), open('broken'), open('ada', 'http://evil.test')]) {
    socket.on('open', () => socket.send(JSON.stringify({ type: 'stop', requestId: 's', id: 'c' })));
    const frames: string[] = [];
    socket.on('message', (data: Buffer) => frames.push(data.toString()));
    expect(await once(socket, 'close')).toMatchObject([1008, expect.anything()]);
    expect(frames.join()).not.toContain('receipt');
  }
  const ada = open('ada');
  await once(ada, 'open');
  ada.send(JSON.stringify({ type: 'stop', requestId: 's', id: 'c' }));
  const [data] = (await once(ada, 'message')) as [Buffer];
  expect(JSON.parse(data.toString())).toMatchObject({ type: 'receipt', receipt: { answer: 'idle' } });
  ada.terminate();
  server.close();
});

test('a body that is no JSON is refused in words that say so', async () => {
  await using store = createMemoryStore();
  await using handler = createChatHandler({ store, authenticate: () => 'ada', agent: 'elsewhere' });
  for (const body of ['nonsense', '{"scope":', '']) {
    const headers = { 'content-type': 'application/json' };
    const refused = await handler.fetch(
      new Request('http://app.test/api/chat/c/stop', { method: 'POST', headers, body }),
    );
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({
      error: { code: 'invalid', message: expect.stringMatching(/^The body is not valid JSON/) as string },
    });
  }
});
