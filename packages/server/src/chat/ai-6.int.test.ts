// A page of AI SDK 6 with its own transport, without our client: approvals and tools in the page work the same.
/* oxlint-disable typescript/no-deprecated -- what applications have */
import { createOpenAI } from '@ai-sdk/openai';
import { type ScriptedResponse, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createMemoryStore } from '@whoa/tasks';
import { streamText, tool } from 'ai';
import {
  AbstractChat,
  type ChatInit,
  type ChatState,
  type ChatStatus,
  DefaultChatTransport,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from 'ai-v6';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { createChatHandler } from './chat-handler.ts';

class State implements ChatState<UIMessage> {
  status: ChatStatus = 'ready';
  error: Error | undefined = undefined;
  messages: UIMessage[] = [];
  pushMessage = (message: UIMessage): void => void (this.messages = [...this.messages, message]);
  popMessage = (): void => void (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index: number, message: UIMessage): void =>
    void (this.messages = this.messages.with(index, message));
  snapshot = <T>(thing: T): T => structuredClone(thing);
}

/** `useChat` without React. */
class PageChat extends AbstractChat<UIMessage> {
  constructor(init: ChatInit<UIMessage>) {
    super({ ...init, state: new State() });
  }
}

async function openPage(script: readonly ScriptedResponse[]) {
  const provider = await startLoopbackProvider({ script: [...script] });
  const store = createMemoryStore();
  const model = createOpenAI({ baseURL: provider.url, apiKey: 'x' }).chat('gpt-4o');
  const tools = {
    pay: tool({ inputSchema: z.object({}), needsApproval: true, execute: () => 'paid' }),
    locate: tool({ inputSchema: z.object({}), outputSchema: z.string() }),
  };
  const reply = createChatHandler({
    store,
    authenticate: () => 'ada',
    tools,
    reply: (turn) => streamText({ model, ...turn }),
  });
  const rest = Promise.withResolvers<void>();
  let turns = 0;
  const chat = new PageChat({
    id: 'c',
    transport: new DefaultChatTransport({
      api: 'http://app.test/api/chat',
      fetch: ((url: string, init: RequestInit) => reply.fetch(new Request(url, init))) as typeof fetch,
    }),
    sendAutomaticallyWhen: (state) =>
      lastAssistantMessageIsCompleteWithApprovalResponses(state) || lastAssistantMessageIsCompleteWithToolCalls(state),
    onFinish: () => void (++turns === 2 && rest.resolve()),
  });
  return {
    chat,
    /** Resolves at the end of the second reply. */
    continued: rest.promise,
    call: () => chat.lastMessage!.parts.find(isToolUIPart)!,
    words: () => chat.lastMessage!.parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
    async [Symbol.asyncDispose]() {
      await reply[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      await provider.close();
    },
  };
}

test.for([true, false])('a question is asked and answered (%s)', async (approved) => {
  const script: ScriptedResponse[] = [
    { parts: [{ text: 'May I? ' }, { call: 'pay', id: 'p1' }] },
    { parts: [{ text: 'So be it.' }] },
  ];
  await using page = await openPage(script);
  await page.chat.sendMessage({ text: 'Pay' });
  expect(page.call().state).toBe('approval-requested');
  await page.chat.addToolApprovalResponse({ id: page.call().approval!.id, approved });
  await page.continued;
  expect([page.words(), page.call().state, page.chat.error]).toEqual([
    'May I? So be it.',
    approved ? 'output-available' : 'output-denied',
    undefined,
  ]);
});

test('a tool runs in the page', async () => {
  await using page = await openPage([{ parts: [{ call: 'locate', id: 'l1' }] }, { parts: [{ text: 'In Oslo.' }] }]);
  await page.chat.sendMessage({ text: 'Where?' });
  expect(page.call().state).toBe('input-available');
  await page.chat.addToolOutput({ tool: 'locate', toolCallId: 'l1', output: 'Oslo' } as never);
  await page.continued;
  expect([page.words(), page.chat.messages.length, page.chat.error]).toEqual(['In Oslo.', 2, undefined]);
});
