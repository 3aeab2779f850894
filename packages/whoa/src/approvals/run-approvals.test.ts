import type { ApprovalAnswer, ApprovalQuestion, ApprovalRequest, Ask } from '@whoa/core/approval';
import type { AskingTask } from '@whoa/tasks/internal';
import { expect, test } from 'vitest';
import { WITHDRAWN } from '../terminal/ask.ts';
import { createRunApprovals } from './run-approvals.ts';

const GIVEN_UP: ApprovalAnswer = { decision: 'no' };

/** Approvals whose terminal answers on request, and withdraws when its signal fires. */
function setUp() {
  const asked: ApprovalQuestion[] = [];
  const published: ApprovalQuestion[] = [];
  const remote: ApprovalAnswer[] = [];
  let type: (answer: ApprovalAnswer) => void = () => {};
  const ask: Ask = (question, { signal }) => {
    asked.push(question);
    return new Promise((resolve) => {
      type = resolve;
      const withdraw = (): void => resolve(WITHDRAWN);
      signal.addEventListener('abort', withdraw);
      if (signal.aborted) withdraw();
    });
  };
  const approvals = createRunApprovals({
    ask,
    until: 'until this run ends',
    decide: () => ({ decision: 'ask' }),
    onRemoteAnswer: (answer) => remote.push(answer),
  });
  // As a task of a store: the first answer counts.
  const open = new Map<string, (answer: ApprovalAnswer) => void>();
  const settle = (callId: string, answer: ApprovalAnswer): void => {
    open.get(callId)?.(answer);
    open.delete(callId);
  };
  const task: AskingTask = {
    ask: (question, { signal }) => {
      if (signal.aborted) return Promise.resolve(GIVEN_UP);
      published.push(question);
      signal.addEventListener('abort', () => settle(question.callId, GIVEN_UP));
      return new Promise((resolve) => open.set(question.callId, resolve));
    },
    answer: (callId, answer) => Promise.resolve(settle(callId, answer)),
    isAsked: (callId) => open.has(callId),
    remembered: new Map<string, boolean>(),
  };
  const request = (id: string): ApprovalRequest => {
    const input = { command: `touch ${id}` };
    return { call: { id, tool: 'bash', input }, tool: { name: 'bash' }, effects: 'execute', input } as ApprovalRequest;
  };
  const approve = (id: string, signal = new AbortController().signal) =>
    approvals.runInTask(task, () => approvals.approve(request(id), { signal }));
  const answer = (callId: string, decision: ApprovalAnswer['decision'], why?: string): void =>
    settle(callId, { decision, ...(why !== undefined && { why }) });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  return { asked, published, open, remote, approve, answer, turn, type: (given: ApprovalAnswer) => type(given) };
}

test('the first answer counts, wherever it comes from', async () => {
  const { approve, answer, type, turn, published, open, remote } = setUp();
  const first = approve('one');
  await turn();
  expect(published).toMatchObject([{ callId: 'one' }]);
  answer('one', 'yes');
  expect([...open.keys()]).toEqual([]);
  answer('one', 'no');
  expect(await first).toMatchObject({ approved: true });
  const second = approve('two');
  await turn();
  type({ decision: 'no', why: 'use printf' });
  await turn();
  answer('two', 'yes');
  expect(await second).toBe('use printf');
  expect([...open.keys()]).toEqual([]);
  expect(remote).toEqual([{ decision: 'yes' }]);
});

test('an answer to another call, before the question or after it, answers nothing', async () => {
  const { approve, answer, type, turn, asked } = setUp();
  answer('one', 'yes');
  const first = approve('one');
  await turn();
  expect(asked).toHaveLength(1);
  answer('other', 'yes');
  type({ decision: 'no' });
  expect(await first).toBe(false);
  answer('one', 'yes');
  expect(asked).toHaveLength(1);
});

test('an always from another terminal covers the scope of the question, and a reason reaches the model', async () => {
  const { approve, answer, turn, asked } = setUp();
  const denied = approve('one');
  await turn();
  answer('one', 'no', 'not today');
  expect(await denied).toBe('not today');
  const allowed = approve('two');
  await turn();
  answer('two', 'always');
  expect(await allowed).toMatchObject({ approved: true });
  expect(await approve('two')).toBe(true);
  expect(asked).toHaveLength(2);
});

test.each(['before', 'while it is asked'])('a cancel %s withdraws the question', async (when) => {
  const { approve, answer, turn, open } = setUp();
  const cancel = new AbortController();
  if (when === 'before') cancel.abort();
  const asking = approve('one', cancel.signal);
  await turn();
  cancel.abort();
  answer('one', 'yes');
  expect(await asking).toBe('cancelled before anyone answered');
  expect([...open.keys()]).toEqual([]);
});
