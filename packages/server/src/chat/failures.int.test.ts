// Failures are reported in detail once, to whoever runs the server; readers get the application's message.
import { createOpenAI } from '@ai-sdk/openai';
import { fromAiSdk } from '@whoa/ai-sdk';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createAgent } from '@whoa/core';
import { createMemoryStore } from '@whoa/tasks';
import { createUIMessageStream, streamText, tool, type UIMessageChunk } from 'ai';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { readMessage, say } from '../../../../test/server/chat-harness.ts';
import { type ChatHandlerOptions, createChatHandler } from './chat-handler.ts';

type Options = Partial<ChatHandlerOptions<Record<never, never>>>;

/** Sends a message, and returns the chunks of the reply and the log. */
async function ask(options: Options) {
  const logged: (Error & { detail?: string })[] = [];
  const warning = vi.spyOn(process, 'emitWarning').mockImplementation((given) => void logged.push(given as Error));
  await using store = createMemoryStore();
  await using handler = createChatHandler({ store, authenticate: () => 'ada', ...options } as never);
  const response = await handler.fetch(
    new Request('http://app.test/api/chat', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'c', messages: [say('u1', 'Hi')] }),
    }),
  );
  const text = await response.text();
  warning.mockRestore();
  const lines = text.split('\n').filter((line) => line.startsWith('data: {'));
  const { tasks } = await store.list({ tenant: 'ada' });
  return { logged, chunks: lines.map((line) => JSON.parse(line.slice(6)) as UIMessageChunk), status: tasks[0]?.status };
}

const findErrors = (chunks: readonly UIMessageChunk[]) => chunks.filter(({ type }) => type === 'error');
const SECRET = 'connect postgres://admin:secret@db';
const boom = (): never => {
  throw new Error(SECRET);
};

test('a reply that throws is logged with its cause, once, and its reader learns nothing about it', async () => {
  const { logged, chunks, status } = await ask({ reply: boom });
  expect(status).toBe('failed');
  expect(findErrors(chunks)).toEqual([{ type: 'error', errorText: 'Something went wrong; nothing more is running.' }]);
  expect(logged).toHaveLength(1);
  expect(logged[0]!.message).toContain("The 'reply' hook failed");
  // This is what Node prints.
  expect(logged[0]!.detail).toContain(SECRET);
  expect(logged[0]!.detail).toContain('failures.int.test');
});

test('the reader of a failed reply sees what the application reports, and a hook gets the error instead of the log', async () => {
  const heard: unknown[] = [];
  const { logged, chunks } = await ask({
    reply: boom,
    describeError: (error) => `Sorry: ${(error as Error).message.length}`,
    hooks: { 'hook-error': ({ hook, error }) => heard.push([hook, (error as Error).message]) },
  });
  expect(findErrors(chunks)).toEqual([{ type: 'error', errorText: `Sorry: ${SECRET.length}` }]);
  expect([logged, heard]).toEqual([[], [['reply', SECRET]]]);
});

test('readers also see the failure of a provider, and of a stream that reports it itself', async () => {
  await using provider = await startLoopbackProvider({ script: [{ status: 400, error: 'no such model' } as never] });
  const model = createOpenAI({ baseURL: provider.url, apiKey: 'x' }).chat('none');
  const failed = await ask({
    reply: (turn) => streamText({ model, ...turn, maxRetries: 0, onError: () => {} }) as never,
    describeError: () => 'The model cannot be reached.',
  });
  expect(findErrors(failed.chunks)).toMatchObject([{ errorText: 'The model cannot be reached.' }]);
  expect([failed.status, failed.logged.length]).toEqual(['failed', 1]);
  const own = await ask({ reply: () => createUIMessageStream({ execute: boom, onError: () => 'My own words.' }) });
  expect(findErrors(own.chunks)).toMatchObject([{ errorText: 'My own words.' }]);
  expect([own.status, own.logged.length]).toEqual(['failed', 1]);
});

test('a reply whose provider is away for a moment waits for it, and is shown once', async () => {
  const cut = { parts: [{ text: ['It is ', { cut: true as const }] }] };
  const script = [cut, { status: 529 }, { parts: [{ text: 'It is five.' }] }];
  await using provider = await startLoopbackProvider({ script });
  const model = fromAiSdk(createOpenAI({ baseURL: provider.url, apiKey: 'x' }).chat('gpt-4o'));
  const agent = createAgent({ name: 'clock', model, retry: { maxAttempts: 1 } });
  const { status, chunks, logged } = await ask({ agent, waitForProvider: { maxMs: 60_000, backoffMs: 50 } });
  expect([status, logged, findErrors(chunks)]).toEqual(['success', [], []]);
  expect(chunks.filter(({ type }) => type === 'data-waiting')).toHaveLength(2);
  expect((await readMessage(chunks))?.parts).toMatchObject([
    { type: 'step-start' },
    { type: 'text', text: 'It is five.' },
  ]);
});

test('a call that fails does not fail its reply', async () => {
  const script = [{ parts: [{ call: 'break', id: 'c1', input: {} }] }, { parts: [{ text: 'It broke.' }] }];
  await using provider = await startLoopbackProvider({ script });
  const model = createOpenAI({ baseURL: provider.url, apiKey: 'x' }).chat('gpt-4o');
  const { status, chunks, logged } = await ask({
    tools: { break: tool({ inputSchema: z.object({}), execute: (): string => boom() }) },
    reply: (turn) => streamText({ model, ...turn }) as never,
  });
  expect([status, logged]).toEqual(['success', []]);
  expect(chunks).toContainEqual({ type: 'tool-output-error', toolCallId: 'c1', errorText: 'An error occurred.' });
});
