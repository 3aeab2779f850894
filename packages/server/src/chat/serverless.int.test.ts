// Functions that end with their response: waitUntil keeps them running, another instance takes over, and edge runtimes
// are rejected.
import { createOpenAI } from '@ai-sdk/openai';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createMemoryStore } from '@whoa/tasks';
import { streamText } from 'ai';
import { afterEach, expect, test, vi } from 'vitest';
import { until } from '../../../../test/promises/fixture.ts';
import { say } from '../../../../test/server/chat-harness.ts';
import { createChatHandler } from './chat-handler.ts';

afterEach(() => vi.unstubAllGlobals());

async function openSite() {
  const stack = new AsyncDisposableStack();
  const go = Promise.withResolvers<void>();
  const provider = await startLoopbackProvider({
    script: [{ parts: [{ text: ['Once ', { stall: go.promise }, 'upon a time.'] }] }],
  });
  stack.defer(() => provider.close());
  const store = stack.use(createMemoryStore());
  const waited: Promise<unknown>[] = [];
  const handler = stack.use(
    createChatHandler({
      store,
      authenticate: () => 'ada',
      waitUntil: (ended) => waited.push(ended),
      reply: (turn) =>
        streamText({ model: createOpenAI({ baseURL: provider.url, apiKey: 'none' }).chat('gpt-4o'), ...turn }),
    }),
  );
  const send = () =>
    handler.fetch(
      new Request('http://app.test/api/chat', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ id: 'c', messages: [say('u1', 'Hi')] }),
      }),
    );
  const stop = () =>
    handler.fetch(
      new Request('http://app.test/api/chat/c/stop', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      }),
    );
  const status = async () => (await store.list({ tenant: 'ada', conversation: 'c' })).tasks[0]?.status;
  return { go, handler, waited, send, stop, status, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

test('waitUntil gets the reply, which continues after its reader has left', async () => {
  await using site = await openSite();
  await (await site.send()).body!.cancel();
  expect(site.waited).toHaveLength(1);
  const ended = vi.fn();
  site.waited[0]!.then(ended, ended);
  await until(async () => (await site.status()) === 'running');
  expect(ended).not.toHaveBeenCalled();
  site.go.resolve();
  await site.waited[0];
  expect(await site.status()).toBe('success');
  expect(await site.handler.messages('c', 'ada')).toHaveLength(2);
});

test('waitUntil ends with a stop, and with the handler itself', async () => {
  await using site = await openSite();
  await (await site.send()).body!.cancel();
  await site.stop();
  await site.waited[0];
  expect(await site.status()).toBe('cancelled');
  await using other = await openSite();
  await (await other.send()).body!.cancel();
  await other.handler[Symbol.asyncDispose]();
  // It is handed back, for another instance.
  await expect(other.waited[0]).resolves.toBeUndefined();
});

test.for([
  ['EdgeRuntime', 'edge-runtime'],
  ['navigator', { userAgent: 'Cloudflare-Workers' }],
] as const)('a runtime without raw sockets is rejected at creation, in words (%s)', ([name, value]) => {
  vi.stubGlobal(name, value);
  expect(() => createChatHandler({ store: 'memory', authenticate: () => 'ada', agent: 'elsewhere' })).toThrow(
    /no raw sockets.*use Node, Bun or Deno; in Next\.js: export const runtime = 'nodejs'/,
  );
});
