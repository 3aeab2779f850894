// P13 in a chat: users can only allow what they have seen.
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import type { ApprovalQuestion } from '@whoa/core/approval';
import { createMemoryStore, createTaskApprovals } from '@whoa/tasks';
import type { UIMessage, UIMessageChunk } from 'ai';
import { expect, test } from 'vitest';
import { createAskingAgent } from '../../../../test/server/asking-agent.ts';
import { listen } from '../http/listen.ts';
import { createChatHandler } from './chat-handler.ts';
import { StoppableChatTransport } from './client/stoppable-chat-transport.ts';

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
  const first = await ada.sendMessages({ ...sent, messages: [say('go')] });
  const questions: { approvalId: string; question: ApprovalQuestion }[] = [];
  const seen = new Set<string>();
  let asked = Promise.withResolvers<void>();
  const chunks: UIMessageChunk[] = [];
  const leaving = new AbortController();
  const toShown = (id: string): UIMessage => {
    const answered = chunks.flatMap((chunk) => (chunk.type === 'tool-approval-response' ? chunk.approvalId : []));
    const parts = chunks.flatMap((chunk) => {
      if (chunk.type !== 'tool-approval-request' || answered.includes(chunk.approvalId)) return [];
      const { toolCallId, approvalId } = chunk;
      return [{ type: 'tool-run', toolCallId, state: 'approval-requested', input: {}, approval: { id: approvalId } }];
    });
    return { id, role: 'assistant', parts: parts as UIMessage['parts'] };
  };
  /** Resolves when someone has answered; with `false` when the test is over. */
  const untilMissed = (message: UIMessage): Promise<boolean> =>
    new Promise((resolve) => {
      const leave = ada.watch('c', (state) => {
        if (state.reply !== undefined && !ada.isMissed('c', state, message)) return;
        leave();
        ada.setPartial('c', message.id);
        resolve(true);
      });
      leaving.signal.addEventListener('abort', () => {
        leave();
        resolve(false);
      });
    });
  /** Reads on whenever someone has answered, as the page does. */
  const read = async (stream: ReadableStream<UIMessageChunk> | null): Promise<void> => {
    chunks.splice(0);
    for await (const chunk of stream ?? []) {
      chunks.push(chunk);
      if (chunk.type !== 'tool-approval-request' || seen.has(chunk.approvalId)) continue;
      seen.add(chunk.approvalId);
      questions.push({
        approvalId: chunk.approvalId,
        question: chunk.approvalDescriptor as ApprovalQuestion,
      });
      asked.resolve();
    }
    const { messageId } = chunks.find(({ type }) => type === 'start') as { messageId: string };
    const answers = chunks.filter(({ type }) => type === 'tool-approval-response');
    const isOver = answers.length === seen.size || !(await untilMissed(toShown(messageId)));
    if (!isOver) await read(await ada.reconnectToStream({ chatId: 'c' }));
  };
  const reading = read(first).catch(() => {});
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
      if (questions.length === 0) await asked.promise;
      asked = Promise.withResolvers();
      return questions.shift()!;
    },
    async [Symbol.asyncDispose]() {
      leaving.abort();
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

test('the message that `useChat` sends itself is accepted as an answer, once', async () => {
  await using chat = await openChat();
  const { approvalId } = await chat.question();
  const second = await chat.question();
  const call = { type: 'tool-run', toolCallId: 'c1', input: { command: COMMAND }, state: 'approval-responded' };
  const part = { ...call, approval: { id: approvalId, approved: true } };
  const other = { ...call, toolCallId: 'c2', approval: { id: second.approvalId, approved: false } };
  const start = chat.chunks.find(({ type }) => type === 'start') as { messageId: string };
  const message = { id: start.messageId, role: 'assistant' as const };
  const parts = [{ type: 'step-start' }, part, other] as unknown as UIMessage['parts'];
  const sent = { chatId: 'c', messageId: message.id, abortSignal: undefined, trigger: 'submit-message' } as const;
  const stream = await chat.ada.sendMessages({ ...sent, messages: [say('go'), { ...message, parts }] });
  const chunks: UIMessageChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  await chat.reading;
  expect(chunks[0]).toMatchObject({ type: 'start', messageId: message.id });
  expect(chunks.map(({ type }) => type)).toContain('reset-step');
  expect(chunks.filter(({ type }) => type === 'text-delta').length).toBeGreaterThan(0);
  expect([chat.ran, chat.audited]).toEqual([[COMMAND], ['ada approve accepted', 'ada approve accepted']]);
});

test('an always answer covers the scope that the question shows, in this task only', async () => {
  await using chat = await openChat();
  const { approvalId } = await chat.question();
  expect(await chat.ada.approve('c', { approvalId, approved: true, remember: true })).toBe(true);
  await chat.reading;
  expect(chat.ran).toEqual([COMMAND, COMMAND]);
});

test('a stop while a person is asked begins nothing, and a later yes counts for nothing', async () => {
  await using chat = await openChat();
  const { approvalId } = await chat.question();
  const { messageId } = chat.chunks.find(({ type }) => type === 'start') as { messageId: string };
  const { result, message } = await chat.ada.stop('c', { waiting: messageId });
  await chat.reading;
  expect(await chat.ada.approve('c', { approvalId, approved: true })).toBe(false);
  expect(chat.ran).toEqual([]);
  // The stream may have ended before the stop; then the receipt has the message.
  expect(result).toBe('accepted');
  if (message === undefined) expect(chat.chunks.at(-1)).toMatchObject({ type: 'abort' });
  else expect(message.parts.filter((part) => 'state' in part)).toMatchObject([{ state: 'output-error' }, {}]);
});
