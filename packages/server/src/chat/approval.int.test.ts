// P13 in a chat: nobody says yes to what they have not been shown.
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import type { ApprovalQuestion } from '@whoa/core/approval';
import { createMemoryStore, createTaskApprovals } from '@whoa/tasks';
import type { UIMessage, UIMessageChunk } from 'ai';
import { expect, test } from 'vitest';
import { createAskingAgent } from '../../../../test/server/asking-agent.ts';
import { StoppableChatTransport } from '../client/stoppable-chat-transport.ts';
import { listen } from '../listen.ts';
import { createChatHandler } from './chat-handler.ts';

const COMMAND = 'echo hello\nrm -rf build\u202e';
const say = (id: string): UIMessage => ({ id, role: 'user', parts: [{ type: 'text', text: id }] });

async function openChat() {
  const provider = await startLoopbackProvider({
    script: ({ body }) =>
      JSON.stringify(body).includes('"tool_call_id"')
        ? { parts: [{ text: 'So be it.' }] }
        : {
            parts: [
              { call: 'run', id: 'c1', input: { command: COMMAND } },
              { call: 'run', id: 'c2', input: { command: COMMAND } },
            ],
          },
  });
  const ran: string[] = [];
  const approvals = createTaskApprovals();
  const store = createMemoryStore();
  const audited: string[] = [];
  const handler = createChatHandler({
    store,
    authenticate: (request) => request.headers.get('x-user'),
    approvals,
    audit: ({ type, actor, result }) => audited.push(`${actor} ${type} ${result}`),
    agent: createAskingAgent({ url: provider.url, approvals, ran }),
  });
  const listening = await listen(handler);
  const page = (user: string) =>
    new StoppableChatTransport({ api: `${listening.url}/api/chat`, headers: { 'x-user': user } });
  const ada = page('ada');
  const sent = { chatId: 'c', messageId: undefined, abortSignal: undefined, trigger: 'submit-message' } as const;
  const stream = await ada.sendMessages({ ...sent, messages: [say('go')] });
  const questions: { approvalId: string; question: ApprovalQuestion }[] = [];
  let asked = Promise.withResolvers<void>();
  const chunks: UIMessageChunk[] = [];
  const reading = (async () => {
    for await (const chunk of stream) {
      chunks.push(chunk);
      if (chunk.type !== 'tool-approval-request') continue;
      questions.push({
        approvalId: chunk.approvalId,
        question: chunk.approvalDescriptor as ApprovalQuestion,
      });
      asked.resolve();
    }
  })().catch(() => {});
  return {
    ada,
    eve: page('eve'),
    ran,
    audited,
    chunks,
    reading,
    provider,
    /** The next question. */
    async question() {
      await asked.promise;
      asked = Promise.withResolvers();
      return questions.shift()!;
    },
    async [Symbol.asyncDispose]() {
      await listening[Symbol.asyncDispose]();
      await handler[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      await provider.close();
    },
  };
}

test('a question holds every line, and only who was asked can answer, once', async () => {
  await using chat = await openChat();
  // Nothing that is sent before the question answers it.
  for (const approvalId of ['c1', 'x']) expect(await chat.ada.approve('c', { approvalId, approved: true })).toBe(false);
  const { approvalId, question } = await chat.question();
  expect(question).toMatchObject({ tool: 'run', effects: 'execute' });
  expect(question.fields).toEqual([{ name: 'command', lines: ['echo hello', 'rm -rf build<U+202E>'] }]);
  expect(question.alwaysScope).toContain('until this task ends');
  expect(await chat.eve.approve('c', { approvalId, approved: true })).toBe(false);
  expect(chat.ran).toEqual([]);
  expect(await chat.ada.approve('c', { approvalId, approved: true })).toBe(true);
  const second = await chat.question();
  expect(await chat.ada.approve('c', { approvalId: second.approvalId, approved: false, why: 'Once is enough.' })).toBe(
    true,
  );
  await chat.reading;
  expect(chat.ran).toEqual([COMMAND]);
  expect(chat.audited).toEqual(['ada approve accepted', 'ada approve accepted']);
  expect(JSON.stringify(chat.provider.requests.at(-1)!.body)).toContain('Once is enough.');
  const answers = chat.chunks.filter(({ type }) => type === 'tool-approval-response');
  expect(answers).toMatchObject([{ approvalId, approved: true }, { approved: false }]);
});

test('an answer for always covers what the question says, in this task alone', async () => {
  await using chat = await openChat();
  const { approvalId } = await chat.question();
  expect(await chat.ada.approve('c', { approvalId, approved: true, remember: true })).toBe(true);
  await chat.reading;
  expect(chat.ran).toEqual([COMMAND, COMMAND]);
});

test('a stop while a person is asked begins nothing, and a later yes counts for nothing', async () => {
  await using chat = await openChat();
  const { approvalId } = await chat.question();
  await chat.ada.stop('c');
  await chat.reading;
  expect(await chat.ada.approve('c', { approvalId, approved: true })).toBe(false);
  expect(chat.ran).toEqual([]);
  expect(chat.chunks.at(-1)).toMatchObject({ type: 'abort' });
});
