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
