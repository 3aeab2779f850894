import { afterEach, expect, test, vi } from 'vitest';
import { createChatHandler } from './chat-handler.ts';

vi.mock('pg', () => Promise.reject(new Error("Cannot find package 'pg'")));
vi.mock('ai', () => Promise.reject(new Error("Cannot find package 'ai'")));
afterEach(() => void vi.restoreAllMocks());

/** Resolves with what Node prints of the next warning. */
function nextWarning(): Promise<string> {
  const warned = Promise.withResolvers<string>();
  const show = (warning: unknown) => warned.resolve((warning as { detail?: string }).detail ?? '');
  vi.spyOn(process, 'emitWarning').mockImplementation(show as typeof process.emitWarning);
  return warned.promise;
}

test('a handler without `ai` fails when it is created, with what to install', async () => {
  const warning = nextWarning();
  const reply = () => ReadableStream.from([]);
  const handler = createChatHandler({ store: 'memory', authenticate: () => 'ada', reply });
  expect(await warning).toContain('npm install ai');
  await handler[Symbol.asyncDispose]();
});

test('a store without pg is reported with what to install, and the request is rejected', async () => {
  const warning = nextWarning();
  const store = 'postgres://127.0.0.1:1/none';
  const handler = createChatHandler({ store, authenticate: () => 'ada', agent: 'elsewhere' });
  const response = await handler.fetch(new Request('http://app.test/api/chat/c/messages'));
  expect([response.status, await response.json()]).toMatchObject([503, { error: { code: 'store-setup' } }]);
  expect(await warning).toContain('npm install pg');
  await Promise.resolve(handler[Symbol.asyncDispose]()).catch(() => {});
});
