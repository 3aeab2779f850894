// A chat over the real `useChat` transport, the real AI SDK and a loopback provider, with an agent and with `streamText`.
import type { ScriptedResponse } from '@whoa/ai-sdk/testing';
import type { UIMessage, UIMessageChunk } from 'ai';
import { describe, expect, test } from 'vitest';
import {
  CALL,
  KINDS,
  type Kind,
  openChat as openAnyChat,
  read,
  say,
  toReplyText,
} from '../../../../test/server/chat-harness.ts';
import { type ChatHandler, createChatHandler } from './chat-handler.ts';
import { StoppableChatTransport } from './client/stoppable-chat-transport.ts';
import { HISTORY_AGENT } from './history-work.ts';

const openChat = (kind: Kind, script: readonly ScriptedResponse[]) => openAnyChat(kind, script, createChatHandler);

/** A page: the transport of `useChat`, and its messages. */
function openPage(handler: ChatHandler, user = 'ada') {
  const headers = { 'x-user': user };
  const transport = new StoppableChatTransport({
    api: 'http://app.test/api/chat',
    headers,
    fetch: ((url: string, init: RequestInit) => handler.fetch(new Request(url, init))) as typeof fetch,
  });
  return {
    transport,
    send: (chatId: string, message: UIMessage, abortSignal?: AbortSignal) =>
      transport.sendMessages({
        trigger: 'submit-message',
        chatId,
        messageId: undefined,
        messages: [message],
        abortSignal,
      }),
    messages: async (chatId: string) => {
      const response = await handler.fetch(new Request(`http://app.test/api/chat/${chatId}/messages`, { headers }));
      return (await response.json()) as UIMessage[];
    },
  };
}

describe.each(KINDS)('%s', (kind) => {
  test('answers, keeps the history, and the next message knows it', async () => {
    await using fixture = await openChat(kind, [
      CALL,
      { parts: [{ text: 'It is 42.' }] },
      { parts: [{ text: 'As I said.' }] },
    ]);
    const page = openPage(fixture.handler);
    fixture.hands.release.resolve('forty-two');
    const first = await read(await page.send('c', say('u1', 'What is it?')));
    expect(first.stopped).toBeUndefined();
    expect(toReplyText(first.message)).toBe('Let me see. It is 42.');
    expect(JSON.stringify(first.message)).toContain('forty-two');
    const second = await read(await page.send('c', say('u2', 'And?')));
    expect(toReplyText(second.message)).toBe('As I said.');
    const sent = JSON.stringify(fixture.provider.requests.at(-1)!.body);
    for (const words of ['What is it?', 'Let me see. ', 'forty-two', 'It is 42.', 'And?'])
      expect(sent).toContain(words);
    const shown = await page.messages('c');
    expect(shown.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
    expect(shown.map(toReplyText)).toEqual(['What is it?', 'Let me see. It is 42.', 'And?', 'As I said.']);
    expect(shown.map(({ id }) => id)).toMatchObject(['u1', expect.any(String), 'u2', expect.any(String)]);
  });

  test('a stop ends the call and keeps the text; the next message’s model sees the result', async () => {
    await using fixture = await openChat(kind, [CALL, { parts: [{ text: 'Sorry.' }] }]);
    const page = openPage(fixture.handler);
    const reading = read(await page.send('c', say('u1', 'Go')));
    await fixture.hands.started.promise;
    await page.transport.stop('c');
    const first = await reading;
    expect(first.stopped).toBe('user');
    expect(toReplyText(first.message)).toBe('Let me see. ');
    expect(first.chunks.map(({ type }) => type)).toContain('data-stop-report');
    expect(JSON.stringify(first.message)).toContain('Interrupted (user)');
    // A page that opens the chat later shows the same.
    const findReports = ({ parts }: UIMessage) => parts.filter(({ type }) => type === 'data-stop-report');
    expect(findReports(first.message!)).toMatchObject([{ data: { calls: [{ state: 'interrupted' }] } }]);
    expect((await page.messages('c')).map(findReports)).toEqual([[], findReports(first.message!)]);
    const second = await read(await page.send('c', say('u2', 'Why?')));
    expect(toReplyText(second.message)).toBe('Sorry.');
    expect(fixture.provider.requests.at(-1)).toMatchObject({ refusal: undefined });
    expect(JSON.stringify(fixture.provider.requests.at(-1)!.body)).toContain('Interrupted (user)');
  });

  test('a reader that leaves stops nothing; it comes back to the whole reply, under the same name', async () => {
    await using fixture = await openChat(kind, [CALL, { parts: [{ text: 'Done.' }] }]);
    const page = openPage(fixture.handler);
    const leaving = new AbortController();
    const stream = await page.send('c', say('u1', 'Go'), leaving.signal);
    const names: (string | undefined)[] = [];
    const gone = read(stream, (chunk) => chunk.type === 'start' && names.push(chunk.messageId)).catch(() => {});
    await fixture.hands.started.promise;
    leaving.abort();
    await gone;
    const again = (await page.transport.reconnectToStream({ chatId: 'c' }))!;
    const back = read(again, (chunk) => chunk.type === 'start' && names.push(chunk.messageId));
    fixture.hands.release.resolve('later');
    const { message, stopped } = await back;
    expect(stopped).toBeUndefined();
    expect(toReplyText(message)).toBe('Let me see. Done.');
    expect(new Set(names).size).toBe(1);
    expect(await page.transport.reconnectToStream({ chatId: 'c' })).toBeNull();
  });

  test('a stop that comes before its message counts, and no other run is touched', async () => {
    await using fixture = await openChat(kind, [CALL, { parts: [{ text: 'Hello.' }] }]);
    const page = openPage(fixture.handler);
    const stop = (body: object) =>
      fixture.handler.fetch(
        new Request('http://app.test/api/chat/c/stop', {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-user': 'ada' },
          body: JSON.stringify(body),
        }),
      );
    const running = read(await page.send('c', say('u1', 'Go')));
    await fixture.hands.started.promise;
    expect(await (await stop({ runId: 'early' })).json()).toEqual({ result: 'recorded' });
    expect(await (await stop({ runId: 'early' })).json()).toEqual({ result: 'unchanged' });
    const send = await fixture.handler.fetch(
      new Request('http://app.test/api/chat', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-user': 'ada' },
        body: JSON.stringify({ id: 'c', runId: 'early', messages: [say('u2', 'Never')] }),
      }),
    );
    const events = (await send.text()).split('\n').filter((line) => line.startsWith('data: {'));
    expect(events.map((line) => (JSON.parse(line.slice(6)) as UIMessageChunk).type)).toEqual(['start', 'abort']);
    fixture.hands.release.resolve('done');
    expect((await running).stopped).toBeUndefined();
    // It is a run like any other, which its user has stopped, and hides no reply from a page that has missed it.
    const { tasks } = await fixture.store.list({ tenant: 'ada', conversation: 'c' });
    const runs = tasks.filter(({ agent }) => agent !== HISTORY_AGENT);
    expect(new Set(runs.map(({ agent }) => agent)).size).toBe(1);
    expect(runs).toMatchObject([
      { key: 'early', status: 'cancelled', outcome: { reason: { kind: 'user', by: 'ada', via: 'chat' } } },
      { status: 'success' },
    ]);
    expect((await page.messages('c')).map(toReplyText)).toEqual(['Go', 'Let me see. Hello.', 'Never']);
    const headers = { 'x-user': 'ada', 'whoa-last-message': 'u1' };
    const missed = await fixture.handler.fetch(new Request('http://app.test/api/chat/c/stream', { headers }));
    expect(await missed.text()).toContain('Hello.');
  });

  test('a user sees only their own chats, and requests without a name or from other pages are rejected', async () => {
    await using fixture = await openChat(kind, [CALL, { parts: [{ text: 'Done.' }] }]);
    const page = openPage(fixture.handler);
    const running = read(await page.send('c', say('u1', 'Go')));
    await fixture.hands.started.promise;
    const other = openPage(fixture.handler, 'eve');
    expect(await other.transport.reconnectToStream({ chatId: 'c' })).toBeNull();
    expect(await other.messages('c')).toEqual([]);
    const ask = (headers: Record<string, string>, method = 'GET', path = '/c/stream') =>
      fixture.handler.fetch(new Request(`http://app.test/api/chat${path}`, { method, headers }));
    expect((await ask({})).status).toBe(401);
    expect((await ask({ 'x-user': 'ada', origin: 'http://evil.test' })).status).toBe(403);
    // Its own pages, including behind a TLS proxy and behind one that uses another host name.
    for (const headers of [
      { origin: 'http://app.test' },
      { origin: 'https://app.test' },
      { origin: 'http://page.test', 'sec-fetch-site': 'same-origin' },
    ])
      expect((await ask({ 'x-user': 'ada', ...headers }, 'GET', '/c/messages')).status).toBe(200);
    const foreign = { origin: 'http://page.test', 'sec-fetch-site': 'cross-site' };
    expect((await ask({ 'x-user': 'ada', ...foreign }, 'GET', '/c/messages')).status).toBe(403);
    expect((await ask({ 'x-user': 'ada' }, 'POST', '/c/stop')).status).toBe(415);
    expect((await ask({ 'x-user': 'ada' }, 'GET', '/c/nothing')).status).toBe(404);
    fixture.hands.release.resolve('done');
    expect((await running).stopped).toBeUndefined();
  });

  test('a reply can be regenerated, and a message edited: what followed it is gone', async () => {
    await using fixture = await openChat(kind, [
      { parts: [{ text: 'One.' }] },
      { parts: [{ text: 'Two.' }] },
      { parts: [{ text: 'Three.' }] },
    ]);
    const page = openPage(fixture.handler);
    const ask = async (trigger: 'submit-message' | 'regenerate-message', message: UIMessage, messageId?: string) => {
      const options = { trigger, chatId: 'c', messageId, messages: [message], abortSignal: undefined };
      return toReplyText((await read(await page.transport.sendMessages(options))).message);
    };
    const words = async () => (await page.messages('c')).map(toReplyText);
    expect(await ask('submit-message', say('u1', 'Count'))).toBe('One.');
    expect(await ask('regenerate-message', say('u1', 'Count'))).toBe('Two.');
    expect(await words()).toEqual(['Count', 'Two.']);
    expect(await ask('submit-message', say('u1', 'Count on'), 'u1')).toBe('Three.');
    expect(await words()).toEqual(['Count on', 'Three.']);
    expect(JSON.stringify(fixture.provider.requests.at(-1)!.body)).not.toMatch(/One|Two/);
  });

  test('a stopped reply that is regenerated is shown without the report of the first', async () => {
    await using fixture = await openChat(kind, [CALL, { parts: [{ text: 'Anew.' }] }]);
    const page = openPage(fixture.handler);
    const reading = read(await page.send('c', say('u1', 'Go')));
    await fixture.hands.started.promise;
    await page.transport.stop('c');
    await reading;
    const again = { trigger: 'regenerate-message', chatId: 'c', messageId: undefined, abortSignal: undefined } as const;
    await read(await page.transport.sendMessages({ ...again, messages: [say('u1', 'Go')] }));
    const shown = await page.messages('c');
    expect(shown.map(toReplyText)).toEqual(['Go', 'Anew.']);
    expect(JSON.stringify(shown)).not.toContain('data-stop-report');
  });

  test('a stopped turn can be taken out of the history', async () => {
    await using fixture = await openChat(kind, [
      { parts: [{ text: ['Once upon', { stall: true }] }] },
      { parts: [{ text: 'Hi.' }] },
    ]);
    const page = openPage(fixture.handler);
    const started = Promise.withResolvers<void>();
    const reading = read(
      await page.send('c', say('u1', 'A story')),
      ({ type }) => type === 'text-delta' && started.resolve(),
    );
    await started.promise;
    await page.transport.stop('c', { rollback: true });
    expect(toReplyText((await reading).message)).toBe('Once upon');
    expect(await page.messages('c')).toEqual([]);
    await read(await page.send('c', say('u2', 'Hello')));
    expect(JSON.stringify(fixture.provider.requests.at(-1)!.body)).not.toContain('A story');
  });
});
