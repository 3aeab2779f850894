// Replies whose process was lost while a call ran or waited.
/* oxlint-disable typescript/no-deprecated -- what applications have */
import { CancellationToken, type Json } from '@whoa/core';
import type { SelfManagedWork, TaskOutcome } from '@whoa/tasks';
import { isToolUIPart, tool, type UIMessage, type UIMessageChunk } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { createReplyWork } from './reply-work.ts';

const tools = {
  pay: tool({ inputSchema: z.object({}), needsApproval: true, execute: () => 'paid' }),
  locate: tool({ inputSchema: z.object({}), outputSchema: z.string() }),
};
const user = { id: 'u', role: 'user', parts: [{ type: 'text', text: 'Go' }] };
const call = (toolName: string): UIMessageChunk => ({
  type: 'tool-input-available',
  toolCallId: 'c1',
  toolName,
  input: {},
});
const asks: UIMessageChunk = { type: 'tool-approval-request', toolCallId: 'c1', approvalId: 'a1' };

interface Given {
  readonly past?: readonly UIMessageChunk[];
  readonly input?: object;
  readonly history?: readonly object[];
  readonly stop?: string;
}

/** Runs a reply after a worker that has left these chunks. The loop writes one word. */
async function takeOver({ past = [], input = user, history = [], stop }: Given) {
  using token = new CancellationToken();
  if (stop !== undefined) token.cancel({ kind: stop }, { mode: 'now' });
  let replies = 0;
  const written: unknown[] = [];
  let before = '';
  const work = createReplyWork({
    tools,
    onLate: () => {},
    onFailure: (error) => {
      throw error;
    },
    reply: () => {
      replies++;
      before = JSON.stringify(written);
      const chunks: UIMessageChunk[] = [
        { type: 'start-step' },
        { type: 'text-start', id: '1' },
        { type: 'text-delta', id: '1', delta: 'Done.' },
        { type: 'text-end', id: '1' },
        { type: 'finish-step' },
        { type: 'finish' },
      ];
      return ReadableStream.from(chunks);
    },
  });
  const context = {
    task: { id: 't', tenant: 'ada', conversation: 'c', inputs: [input], stop: { reason: { kind: stop, at: 0 } } },
    history,
    previousJournal:
      past.length === 0 ? [] : [{ position: 1, epoch: 1, at: 0, event: { type: 'ui-chunks', chunks: past } }],
    token,
    journal: (event: unknown) => Promise.resolve(void written.push(event)),
  } as unknown as Parameters<SelfManagedWork['runTask']>[0];
  const outcome = await work.runTask(context);
  return { outcome, replies, before, settled: () => work.settle!(context) };
}

const getMessage = ({ newMessages = [], history }: TaskOutcome) =>
  ((history ?? newMessages) as Json[]).at(-1) as unknown as UIMessage;
const findCall = (outcome: TaskOutcome) => getMessage(outcome).parts.find(isToolUIPart);

test.for([
  ['a question', 'pay', [asks], 'approval-requested'],
  ["a page's call", 'locate', [], 'input-available'],
] as const)('%s still waits after its process was lost, and the loop does not run', async ([, name, more, state]) => {
  const past: UIMessageChunk[] = [{ type: 'start-step' }, call(name), ...more];
  const { outcome, replies } = await takeOver({ past });
  expect([outcome.status, replies, findCall(outcome)?.state]).toEqual(['success', 0, state]);
});

test.for(['shutdown', 'lease-lost'])('a hand-over (%s) leaves a question open', async (stop) => {
  const past: UIMessageChunk[] = [{ type: 'start-step' }, call('pay'), asks];
  const { outcome } = await takeOver({ past, stop });
  expect([outcome.status, findCall(outcome)?.state]).toEqual(['cancelled', 'approval-requested']);
});

test.for([
  ['pay', [asks], /^Not started: cancelled \(user\)/, 'not-started'],
  ['locate', [], /^Outcome unknown: it was stopped \(user\)/, 'unknown'],
] as const)('a stop closes a waiting call of %s, by whatever process', async ([name, more, words, state]) => {
  const past: UIMessageChunk[] = [{ type: 'start-step' }, call(name), ...more];
  const { outcome, settled } = await takeOver({ past, stop: 'user' });
  for (const one of [outcome, await settled()]) {
    expect(findCall(one)).toMatchObject({ state: 'output-error', errorText: expect.stringMatching(words) as string });
    expect(one.stopReport).toMatchObject({ calls: [{ callId: 'c1', tool: name, state }] });
  }
});

test('a loop that had ended when its process was lost does not run again', async () => {
  const words: UIMessageChunk[] = [
    { type: 'text-start', id: '1' },
    { type: 'text-delta', id: '1', delta: 'Said.' },
    { type: 'text-end', id: '1' },
  ];
  const past: UIMessageChunk[] = [{ type: 'start-step' }, ...words, { type: 'finish-step' }, { type: 'finish' }];
  const { outcome, replies } = await takeOver({ past });
  expect([outcome.status, outcome.answer, replies]).toEqual(['success', 'Said.', 0]);
});

const asked = {
  id: 'm',
  role: 'assistant',
  parts: [
    { type: 'step-start' },
    { type: 'tool-pay', toolCallId: 'c1', state: 'approval-requested', input: {}, approval: { id: 'a1' } },
  ],
};
const yes = {
  type: 'answers',
  messageId: 'm',
  answers: [{ toolCallId: 'c1', approvalId: 'a1', approved: true }],
};

test('an approved call that ran when its process was lost never runs again: its outcome is unknown', async () => {
  const past: UIMessageChunk[] = [{ type: 'tool-approval-response', approvalId: 'a1', approved: true }];
  const { outcome, replies } = await takeOver({ past, input: yes, history: [user, asked] });
  expect(findCall(outcome)).toMatchObject({
    state: 'output-error',
    errorText: expect.stringMatching(/^Outcome unknown/) as string,
  });
  expect([replies, outcome.history]).toMatchObject([1, [{ id: 'u' }, { id: 'm' }]]);
});

test('a reply is also recovered if its process was lost while it was being stopped', async () => {
  const past: UIMessageChunk[] = [{ type: 'tool-approval-response', approvalId: 'a1', approved: true }];
  const { settled } = await takeOver({ past, input: yes, history: [user, asked], stop: 'user' });
  expect(await settled()).toMatchObject({ stopReport: { calls: [{ callId: 'c1', state: 'unknown' }] } });
});

test('an answer is stored before the loop can start its call', async () => {
  const { before, replies } = await takeOver({ input: yes, history: [user, asked] });
  expect(before).toContain('"tool-approval-response","approvalId":"a1","approved":true');
  expect(replies).toBe(1);
});

test('answers to a message that is gone change nothing', async () => {
  const { outcome, replies } = await takeOver({ input: yes, history: [user] });
  expect([outcome.status, replies, outcome.history]).toEqual(['success', 0, [user]]);
});

test('an answer to one of two questions waits for the other', async () => {
  const second = { type: 'tool-pay', toolCallId: 'c2', state: 'approval-requested', input: {}, approval: { id: 'a2' } };
  const both = { ...asked, parts: [...asked.parts, second] };
  const { outcome, replies } = await takeOver({ input: yes, history: [user, both] });
  expect([outcome.status, replies]).toEqual(['success', 0]);
  const states = getMessage(outcome)
    .parts.filter(isToolUIPart)
    .map(({ state }) => state);
  expect(states).toEqual(['approval-responded', 'approval-requested']);
});

test.for(['shutdown', 'lease-lost', 'user'])('a stop (%s) mid-text keeps the text so far', async (kind) => {
  using token = new CancellationToken();
  const written: { chunks: readonly UIMessageChunk[] }[] = [];
  const work = createReplyWork({
    onLate: () => {},
    onFailure: () => {},
    reply: () =>
      new ReadableStream<UIMessageChunk>({
        start(controller) {
          controller.enqueue({ type: 'start-step' });
          controller.enqueue({ type: 'text-start', id: '1' });
          controller.enqueue({ type: 'text-delta', id: '1', delta: 'Half' });
        },
        pull(controller) {
          token.cancel({ kind }, { mode: 'kill' });
          controller.close();
        },
      }),
  });
  await work.runTask({
    task: { id: 't', tenant: 'ada', conversation: 'c', inputs: [user] },
    history: [],
    previousJournal: [],
    token,
    journal: (event: (typeof written)[number]) => Promise.resolve(void written.push(event)),
  } as unknown as Parameters<SelfManagedWork['runTask']>[0]);
  const types = written.flatMap(({ chunks }) => chunks.map(({ type }) => type));
  // The next worker generates an open step again; closed, its text would appear twice.
  expect(types.slice(3)).toEqual(kind === 'user' ? ['text-end', 'finish-step'] : []);
});
