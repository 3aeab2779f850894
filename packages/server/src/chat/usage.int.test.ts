// Every reply's tokens are in its record and its message. For a stopped reply, the tokens that the provider had reported.
/* oxlint-disable typescript/no-deprecated -- what applications have */
import { createAnthropic } from '@ai-sdk/anthropic';
import { type ScriptedResponse, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createMemoryStore } from '@whoa/tasks';
import { streamText, tool, type UIMessage } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { read, say } from '../../../../test/server/chat-harness.ts';
import { createChatHandler } from './chat-handler.ts';
import { StoppableChatTransport } from './client/stoppable-chat-transport.ts';

type Metadata = Parameters<ReturnType<typeof streamText>['toUIMessageStream']>[0];

async function openChat(script: readonly ScriptedResponse[], options?: Metadata) {
  const provider = await startLoopbackProvider({ script: [...script] });
  const store = createMemoryStore();
  const model = createAnthropic({ baseURL: provider.url, apiKey: 'x' })('claude-sonnet-4-5');
  const tools = { look: tool({ inputSchema: z.object({}), execute: () => 'seen' }) };
  const handler = createChatHandler({
    store,
    authenticate: () => 'ada',
    tools,
    reply: (turn) => {
      const result = streamText({ model, ...turn });
      return options === undefined ? result : result.toUIMessageStream(options);
    },
  });
  const transport = new StoppableChatTransport({
    api: 'http://app.test/api/chat',
    fetch: ((url: string, init: RequestInit) => handler.fetch(new Request(url, init))) as typeof fetch,
  });
  return {
    transport,
    send: (text: string) =>
      transport.sendMessages({
        trigger: 'submit-message',
        chatId: 'c',
        messageId: undefined,
        messages: [say(text, text)],
        abortSignal: undefined,
      }),
    async ended() {
      const { tasks } = await store.list({ tenant: 'ada' });
      const response = await handler.fetch(new Request('http://app.test/api/chat/c/messages'));
      return { usage: tasks[0]!.outcome?.usage, stored: ((await response.json()) as UIMessage[]).at(-1)!.metadata };
    },
    async [Symbol.asyncDispose]() {
      await handler[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      await provider.close();
    },
  };
}

const LOOK: ScriptedResponse = { parts: [{ call: 'look', id: 'c1', input: {} }] };

test('a whole reply has all of its tokens', async () => {
  await using site = await openChat([LOOK, { parts: [{ text: 'Done.' }] }]);
  const { message } = await read(await site.send('Go'));
  const { usage, stored } = await site.ended();
  expect(usage).toMatchObject({ isComplete: true });
  expect(usage!.inputTokens * usage!.outputTokens).toBeGreaterThan(0);
  expect([message!.metadata, stored]).toEqual([{ usage }, { usage }]);
});

test('a stopped reply has what its provider had reported, marked as not complete', async () => {
  await using site = await openChat([LOOK, { parts: [{ text: ['Half', { stall: true }] }] }]);
  const said = Promise.withResolvers<void>();
  const reading = read(await site.send('Go'), ({ type }) => type === 'text-delta' && said.resolve());
  await said.promise;
  await site.transport.stop('c');
  await reading;
  const { usage, stored } = await site.ended();
  expect(usage).toMatchObject({ isComplete: false });
  expect(stored).toEqual({ usage });
  // Both steps count. Of the step that was cut off, Anthropic reports the tokens at its start.
  await using first = await openChat([LOOK, { parts: [{ text: 'Done.' }] }]);
  await read(await first.send('Go'));
  expect(usage!.inputTokens).toBe((await first.ended()).usage!.inputTokens);
});

test('metadata of the application is not changed', async () => {
  const messageMetadata = ({ part }: { part: { type: string } }) =>
    part.type === 'start' ? { model: 'm' } : undefined;
  await using site = await openChat([{ parts: [{ text: 'Done.' }] }], { messageMetadata });
  const { message } = await read(await site.send('Go'));
  const { usage, stored } = await site.ended();
  expect([message!.metadata, stored]).toEqual([{ model: 'm' }, { model: 'm' }]);
  expect(usage).toMatchObject({ isComplete: true });
});
