import type { UIMessage } from 'ai';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { StoppableChatTransport } from './stoppable-chat-transport.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A reply whose connection is lost after its start. */
function lostReply(): Response {
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        controller.enqueue(new TextEncoder().encode('data: {"type":"start","messageId":"m1"}\n\n'));
      },
      pull: (controller) => controller.error(new TypeError('network error')),
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

test('a reply is opened again if the connection that should continue it stays silent', async () => {
  const asked: string[] = [];
  const fetch = (url: string, { method, signal }: RequestInit): Promise<Response> => {
    asked.push(`${method} ${url}`);
    if (method === 'POST') return Promise.resolve(lostReply());
    if (asked.length > 2) return Promise.resolve(new Response(null, { status: 204 }));
    return new Promise((_, failed) => signal?.addEventListener('abort', () => failed(signal.reason as Error)));
  };
  const transport = new StoppableChatTransport({
    api: 'http://app.test/chat',
    fetch: fetch as typeof globalThis.fetch,
  });
  const message: UIMessage = { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Hello' }] };
  const about = { chatId: 'c', messages: [message], messageId: undefined, abortSignal: undefined };
  const reading = transport
    .sendMessages({ ...about, trigger: 'submit-message' })
    .then((stream) => stream.pipeTo(new WritableStream()));
  await vi.advanceTimersByTimeAsync(40_000);
  expect(asked.map((one) => one.split('/').at(-1))).toEqual(['chat', 'stream', 'stream']);
  await reading;
});

test('the messages of a chat are given up after ten seconds, so that they can be read again', async () => {
  const fetch = (_: string, { signal }: RequestInit): Promise<Response> =>
    new Promise((_answered, failed) => signal?.addEventListener('abort', () => failed(signal.reason as Error)));
  const transport = new StoppableChatTransport({
    api: 'http://app.test/chat',
    fetch: fetch as typeof globalThis.fetch,
  });
  const reading = transport.readMessages('c').then(
    () => 'read',
    (error: Error) => error.name,
  );
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await reading).toBe('TimeoutError');
});

test('messages that were read while a reply was streaming are read again when it has ended', async () => {
  const reply = { id: 'm1', role: 'assistant', parts: [] } as UIMessage;
  const fetch = (url: string, { method }: RequestInit): Promise<Response> => {
    if (method === 'POST') return Promise.resolve(lostReply());
    if (url.endsWith('/stream')) return Promise.resolve(new Response(null, { status: 204 }));
    return Promise.resolve(Response.json([], { headers: { 'whoa-version': 'v1 ' } }));
  };
  const transport = new StoppableChatTransport({
    api: 'http://app.test/chat',
    fetch: fetch as typeof globalThis.fetch,
  });
  const message: UIMessage = { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Hello' }] };
  const about = { chatId: 'c', messages: [message], messageId: undefined, abortSignal: undefined };
  const stream = await transport.sendMessages({ ...about, trigger: 'submit-message' });
  const reader = stream.getReader();
  await reader.read();
  const state = { version: 'v1', questions: [] };
  expect(transport.toShown('c', await transport.readMessages('c'), [reply])).toEqual([reply]);
  expect(transport.isShown('c', state)).toBe(false);
  const end = reader.read();
  await vi.advanceTimersByTimeAsync(1_000);
  expect((await end).done).toBe(true);
  expect(transport.toShown('c', await transport.readMessages('c'), [reply])).toEqual([]);
  expect(transport.isShown('c', state)).toBe(true);
});
