import { afterEach, expect, test, vi } from 'vitest';
import { createChatHandler } from './chat-handler.ts';

vi.mock('ioredis', () => Promise.reject(new Error("Cannot find package 'ioredis'")));
vi.mock('pg', () => Promise.reject(new Error("Cannot find package 'pg'")));
vi.mock('ai', () => Promise.reject(new Error("Cannot find package 'ai'")));
afterEach(() => void vi.restoreAllMocks());

test.for([
  ['ai', { store: 'memory:', reply: () => ReadableStream.from([]) }],
  ['ioredis', { store: 'redis://127.0.0.1:1', agent: 'elsewhere' }],
  ['pg', { store: { backend: 'postgres', url: 'postgres://127.0.0.1:1/none' }, agent: 'elsewhere' }],
] as const)('a handler without %s says so when it is created, and what to install', async ([peer, options]) => {
  const warned = Promise.withResolvers<{ detail?: string }>();
  vi.spyOn(process, 'emitWarning').mockImplementation((warning) => warned.resolve(warning as object));
  await using _handler = createChatHandler({ authenticate: () => 'ada', ...options } as never);
  expect((await warned.promise).detail).toContain(`npm install ${peer}`);
});
