// An agent's questions, and tools that run in the page, as the real `useChat` answers them.
import { Chat } from '@ai-sdk/react';
import { createAgent, defineTool, type Tool } from '@whoa/core';
import { createScriptedModel } from '@whoa/core/testing';
import { createMemoryStore, createTaskApprovals, type TaskStore } from '@whoa/tasks';
import {
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from 'ai';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { createChatHandler } from './chat-handler.ts';
import { StoppableChatTransport } from './client/stoppable-chat-transport.ts';

const about = { description: 'Asks', inputSchema: z.object({}) };
const when = defineTool({ ...about, name: 'when', answeredBy: 'user', answerSchema: z.object({ day: z.number() }) });
const locate = defineTool({ ...about, name: 'locate', answeredBy: 'client', effects: 'read' });
const pay = defineTool({ ...about, name: 'pay', effects: 'write', execute: () => 'paid' });

const endings: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end();
});

/** A site whose agent makes these calls in one turn, and repeats their results. */
function openSite(...calls: string[]) {
  const store: TaskStore = createMemoryStore();
  const model = createScriptedModel([
    ['Well. ', ...calls.map((call) => ({ call, id: call, input: {} }))],
    ({ messages }) => [
      messages
        .filter(({ role }) => role === 'tool')
        .map(({ content }) => content as string)
        .join(', '),
    ],
  ]);
  const createHandler = () => {
    const approvals = createTaskApprovals({ parkAfterMs: 0 });
    const tools = [when, locate, pay] as Tool[];
    const agent = createAgent({ name: 'assistant', model, tools, approve: approvals.approve });
    return createChatHandler({ store, authenticate: () => 'ada', agent, approvals });
  };
  let handler = createHandler();
  endings.push(async () => {
    await handler[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  });
  const send = ((url: string, init: RequestInit) => handler.fetch(new Request(url, init))) as typeof fetch;
  const open = (onToolCall?: (page: Chat<UIMessage>, toolCallId: string) => void) => {
    const transport = new StoppableChatTransport({
      api: 'http://app.test/api/chat',
      fetch: send,
    });
    const page: Chat<UIMessage> = new Chat({
      id: 'c',
      transport,
      sendAutomaticallyWhen: (state) =>
        lastAssistantMessageIsCompleteWithApprovalResponses(state) ||
        lastAssistantMessageIsCompleteWithToolCalls(state),
      ...(onToolCall && { onToolCall: ({ toolCall }) => onToolCall(page, toolCall.toolCallId) }),
    });
    return page;
  };
  const deploy = async () => {
    await handler[Symbol.asyncDispose]();
    handler = createHandler();
  };
  return { store, open, deploy, fetch: send };
}

async function quiet(chat: Chat<UIMessage>): Promise<void> {
  do await new Promise((resolve) => setTimeout(resolve, 5));
  while (chat.status === 'submitted' || chat.status === 'streaming');
}

const findCalls = (chat: Chat<UIMessage>) => (chat.messages.at(-1)?.parts ?? []).filter(isToolUIPart);
const states = (chat: Chat<UIMessage>) => findCalls(chat).map(({ state }) => state);
const words = (chat: Chat<UIMessage>) =>
  (chat.messages.at(-1)?.parts ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('');

test("an agent's question waits in the page, and addToolOutput continues the same message, also after a deploy", async () => {
  const { open, deploy } = openSite('when');
  const page = open();
  await page.sendMessage({ text: 'go' });
  await quiet(page);
  expect([page.status, states(page)]).toEqual(['ready', ['input-available']]);
  const { id } = page.messages.at(-1)!;
  await deploy();
  await page.addToolOutput({ tool: 'when', toolCallId: 'when', output: { day: 3 } } as never);
  await quiet(page);
  expect([page.error, page.messages.length, page.messages.at(-1)!.id]).toEqual([undefined, 2, id]);
  expect(findCalls(page)).toMatchObject([{ state: 'output-available', output: { content: '{"day":3}' } }]);
  expect(words(page)).toBe('Well. {"day":3}');
});

test('a tool that runs in the page continues the reply with its result', async () => {
  const { open } = openSite('locate');
  const page = open(
    (own, toolCallId) => void own.addToolOutput({ tool: 'locate', toolCallId, output: 'Oslo' } as never),
  );
  await page.sendMessage({ text: 'go' });
  await quiet(page);
  await quiet(page);
  expect(words(page)).toBe('Well. Oslo');
});

test('an error of the page is the end of the call', async () => {
  const { open } = openSite('locate');
  const page = open();
  await page.sendMessage({ text: 'go' });
  await quiet(page);
  const failed = { tool: 'locate', toolCallId: 'locate', state: 'output-error', errorText: 'no GPS' };
  await page.addToolOutput(failed as never);
  await quiet(page);
  expect(words(page)).toBe('Well. no GPS');
});

test('an output that does not match the schema is rejected, and the question stays open', async () => {
  const { open, store } = openSite('when');
  const page = open();
  await page.sendMessage({ text: 'go' });
  await quiet(page);
  await page.addToolOutput({ tool: 'when', toolCallId: 'when', output: { day: 'soon' } } as never);
  await quiet(page);
  expect(page.error?.message).toMatch(/answer\.day/);
  expect((await store.questions({ tenant: 'ada' })).questions).toHaveLength(1);
});

test('an approval next to a question is answered by addToolApprovalResponse', async () => {
  const { open } = openSite('pay', 'when');
  const page = open();
  await page.sendMessage({ text: 'go' });
  await quiet(page);
  expect(states(page)).toEqual(['approval-requested', 'input-available']);
  const { approval } = findCalls(page)[0] as { approval: { id: string } };
  await page.addToolOutput({ tool: 'when', toolCallId: 'when', output: { day: 1 } } as never);
  await page.addToolApprovalResponse({ id: approval.id, approved: true });
  await quiet(page);
  await quiet(page);
  expect(page.error).toBeUndefined();
  expect(words(page)).toBe('Well. paid, {"day":1}');
});

test('an approval alone is answered by addToolApprovalResponse, in the same message, also after a deploy', async () => {
  const { open, deploy } = openSite('pay');
  const page = open();
  await page.sendMessage({ text: 'go' });
  await quiet(page);
  expect([page.status, states(page)]).toEqual(['ready', ['approval-requested']]);
  const { id } = page.messages.at(-1)!;
  await deploy();
  const { approval } = findCalls(page)[0] as { approval: { id: string } };
  await page.addToolApprovalResponse({ id: approval.id, approved: true });
  await quiet(page);
  expect([page.error, page.messages.length, page.messages.at(-1)!.id]).toEqual([undefined, 2, id]);
  expect([states(page), words(page)]).toEqual([['output-available'], 'Well. paid']);
});

test('a stop while the reply waits for a person returns the message with closed calls', async () => {
  const { open, fetch, store } = openSite('pay', 'locate');
  const page = open();
  await page.sendMessage({ text: 'go' });
  await quiet(page);
  const { id } = page.messages.at(-1)!;
  const stopped = await fetch('http://app.test/api/chat/c/stop', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ messageId: id }),
  });
  const { result, message } = (await stopped.json()) as { result: string; message: UIMessage };
  expect([result, message.id]).toEqual(['accepted', id]);
  const [paying, locating] = message.parts.filter(isToolUIPart);
  expect(paying).toMatchObject({ state: 'output-error', errorText: expect.stringContaining('Not started') as string });
  expect(locating).toMatchObject({ state: 'output-error', errorText: expect.stringContaining('unknown') as string });
  const { tasks } = await store.list({ tenant: 'ada', conversation: 'c' });
  expect(tasks.map(({ status }) => status)).toEqual(['cancelled']);
  // A late answer of the page starts nothing.
  const { approval } = findCalls(page)[0] as { approval: { id: string } };
  await page.addToolApprovalResponse({ id: approval.id, approved: true });
  await page.addToolOutput({ tool: 'locate', toolCallId: 'locate', output: 'here' } as never);
  await quiet(page);
  expect(words(page)).toBe('Well. ');
});

test('a page that opens the chat while it waits shows the question, and another page that answers too late sees the end', async () => {
  const { open } = openSite('when');
  const [first, second] = [open(), open()];
  await first.sendMessage({ text: 'go' });
  await quiet(first);
  await second.resumeStream();
  await quiet(second);
  expect(states(second)).toEqual(['input-available']);
  await first.addToolOutput({ tool: 'when', toolCallId: 'when', output: { day: 3 } } as never);
  await quiet(first);
  await second.addToolOutput({ tool: 'when', toolCallId: 'when', output: { day: 4 } } as never);
  await quiet(second);
  expect([words(first), words(second)]).toEqual(['Well. {"day":3}', 'Well. {"day":3}']);
});
