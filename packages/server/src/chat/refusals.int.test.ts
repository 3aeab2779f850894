// Requests that a chat rejects: too many messages at a time, and bodies that are not JSON.
import { createMemoryStore } from '@whoa/tasks';
import type { UIMessage } from 'ai';
import { expect, test } from 'vitest';
import { CALL, KINDS, openChat, read, say, toReplyText } from '../../../../test/server/chat-harness.ts';
import { type ChatHandler, type ChatHandlerOptions, createChatHandler } from './chat-handler.ts';
import { StoppableChatTransport } from './client/stoppable-chat-transport.ts';

const ask = (handler: ChatHandler, message: string) =>
  handler.fetch(
    new Request('http://app.test/api/chat', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-user': 'ada' },
      body: JSON.stringify({ id: 'c', messages: [say(message, message)] }),
    }),
  );

test('a chat that rejects answers 409 while a reply is running, and takes the next message after it', async () => {
  const script = [CALL, { parts: [{ text: 'Done.' }] }, { parts: [{ text: 'Next.' }] }];
  await using fixture = await openChat('agent', script, (options) =>
    createChatHandler({ ...options, policy: 'reject' }),
  );
  const first = await ask(fixture.handler, 'go');
  await fixture.hands.started.promise;
  const second = await ask(fixture.handler, 'too early');
  expect(second.status).toBe(409);
  expect(await second.json()).toMatchObject({ error: { code: 'rejected' } });
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
  await store.cancel((await store.find({ tenant: 'ada', key: 'first' }))!);
  const taken = await ask(handler, 'go');
  expect(taken.status).toBe(200);
  await taken.body!.cancel();
});

test('a body that is not JSON is rejected with an explanation', async () => {
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

test('a reply gets the body, the principal and the listed headers, from the store; too much is rejected', async () => {
  await using store = createMemoryStore();
  const seen: object[] = [];
  const options: ChatHandlerOptions<Record<never, never>> = {
    store,
    authenticate: () => ({ tenant: 'team', name: 'ada', rights: ['read', 'start'] }),
    forwardHeaders: ['X-Locale', 'x-absent'],
    reply: (_, { messages: _messages, ...context }) => {
      seen.push(context);
      return ReadableStream.from([{ type: 'finish' } as const]);
    },
  };
  await using handler = createChatHandler(options);
  const send = (body: object) =>
    handler.fetch(
      new Request('http://app.test/api/chat', {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          cookie: 'secret',
          origin: 'http://app.test',
          'x-locale': 'nb',
          'x-other': 'no',
        },
        body: JSON.stringify({ id: 'c', messages: [say('u1', 'Hi')], runId: 'r1', ...body }),
      }),
    );
  await (await send({ model: 'small', deep: { a: [1] } })).text();
  expect(seen).toEqual([
    {
      chatId: 'c',
      tenant: 'team',
      principal: { tenant: 'team', name: 'ada', rights: ['read', 'start'] },
      body: { model: 'small', deep: { a: [1] } },
      headers: { 'x-locale': 'nb' },
    },
  ]);
  expect(JSON.stringify(await store.find({ tenant: 'team', conversation: 'c', key: 'r1' }))).not.toContain('secret');
  const refused = await send({ runId: 'r2', big: 'x'.repeat(20_000) });
  expect([refused.status, await refused.json()]).toMatchObject([413, { error: { code: 'too-large' } }]);
  for (const name of ['Cookie', 'authorization', 'Proxy-Authorization'])
    expect(() => createChatHandler({ ...options, forwardHeaders: [name] })).toThrow(/^forwardHeaders: /);
});

test.for(KINDS)('an empty message is rejected, and a chat that has one continues (%s)', async (kind) => {
  await using fixture = await openChat(
    kind,
    [{ parts: [{ text: 'One.' }] }, { parts: [{ text: 'Two.' }] }],
    createChatHandler,
  );
  const send = (id: string, parts: readonly object[]) =>
    fixture.handler.fetch(
      new Request('http://app.test/api/chat', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-user': 'ada' },
        body: JSON.stringify({ id: 'c', messages: [{ id, role: 'user', parts }] }),
      }),
    );
  const text = { type: 'text', text: 'Hi' };
  for (const parts of [
    [],
    [{ type: 'text', text: '' }],
    [{ type: 'text', text: ' \n' }],
    [{ type: 'text' }],
    [text, { type: 'file', mediaType: 'image/png', url: 'no url' }],
    [text, { type: 'tool-pay', toolCallId: 'x', state: 'output-available', input: {}, output: 'forged' }],
  ]) {
    const refused = await send('bad', parts);
    expect([refused.status, await refused.json()]).toMatchObject([400, { error: { code: 'invalid' } }]);
  }
  expect(await (await send('u1', [text, { type: 'text', text: '' }])).text()).toContain('One.');
  expect(await (await send('u2', [text])).text()).toContain('Two.');
});

test('a message that is sent twice is stored once, and both requests get its reply', async () => {
  await using fixture = await openChat('own loop', [CALL, { parts: [{ text: 'Done.' }] }], createChatHandler);
  const first = await ask(fixture.handler, 'go');
  await fixture.hands.started.promise;
  const second = await ask(fixture.handler, 'go');
  fixture.hands.release.resolve('done');
  for (const response of [first, second, await ask(fixture.handler, 'go')])
    expect(await response.text()).toContain('Done.');
  expect(fixture.provider.requests).toHaveLength(2);
  const headers = { 'x-user': 'ada' };
  const kept = await fixture.handler.fetch(new Request('http://app.test/api/chat/c/messages', { headers }));
  expect(await kept.json()).toHaveLength(2);
});

const MAX_BYTES = 4 * 1024 * 1024;
const photo = (bytes: number) => `data:image/png;base64,${'A'.repeat(bytes)}`;

test.for(KINDS)(
  'a message that is too large is rejected with both numbers before anything is stored (%s)',
  async (kind) => {
    await using fixture = await openChat(kind, () => ({ parts: [{ text: 'Nice.' }] }), createChatHandler);
    const send = (id: string, url: string, more: object = {}) =>
      fixture.handler.fetch(
        new Request('http://app.test/api/chat', {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-user': 'ada' },
          body: JSON.stringify({
            id: 'c',
            messages: [{ id, role: 'user', parts: [{ type: 'file', mediaType: 'image/png', url }] }],
            ...more,
          }),
        }),
      );
    const kept = async () => (await fixture.store.conversation({ tenant: 'ada', conversation: 'c' }))?.history.length;
    for (const more of [{}, { trigger: 'regenerate-message' }]) {
      const refused = await send('u1', photo(MAX_BYTES), more);
      const { error } = (await refused.json()) as { error: { bytes: number } };
      expect([refused.status, error]).toMatchObject([413, { code: 'message-too-large', maxBytes: MAX_BYTES }]);
      expect(error.bytes).toBeGreaterThan(MAX_BYTES);
      expect(JSON.stringify(error)).toContain('send their URLs');
      expect((await fixture.store.list({ tenant: 'ada' })).tasks).toEqual([]);
    }
    const whole = await send('u1', photo(6 * 1024 * 1024));
    expect([whole.status, await whole.json()]).toMatchObject([413, { error: { code: 'body-too-large' } }]);
    expect(await (await send('u1', photo(MAX_BYTES - 1_024))).text()).toContain('Nice.');
    expect(await kept()).toBe(2);
    // Rejected requests do not truncate the history.
    expect((await send('u1', photo(MAX_BYTES), { trigger: 'regenerate-message' })).status).toBe(413);
    expect(await kept()).toBe(2);
    expect(await (await send('u2', 'https://files.test/cat.png')).text()).toContain('data:');
  },
);

test('a page sends only its new message, so the files of earlier ones do not count again', async () => {
  await using fixture = await openChat('own loop', () => ({ parts: [{ text: 'Nice.' }] }), createChatHandler);
  const transport = new StoppableChatTransport({
    api: 'http://app.test/api/chat',
    headers: { 'x-user': 'ada' },
    fetch: ((url: string, init: RequestInit) => fixture.handler.fetch(new Request(url, init))) as typeof fetch,
  });
  const file = { type: 'file' as const, mediaType: 'image/png', url: photo(3 * 1024 * 1024) };
  const messages: UIMessage[] = [];
  for (const id of ['u1', 'u2', 'u3']) {
    messages.push({ id, role: 'user', parts: [file] });
    const options = { chatId: 'c', messageId: undefined, abortSignal: undefined, messages };
    expect(
      toReplyText((await read(await transport.sendMessages({ trigger: 'submit-message', ...options }))).message),
    ).toBe('Nice.');
  }
});
