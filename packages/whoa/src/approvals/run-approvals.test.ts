import type { ApprovalAnswer, ApprovalQuestion, ApprovalRequest, Ask } from '@whoa/core/approval';
import { expect, test } from 'vitest';
import { WITHDRAWN } from '../terminal/ask.ts';
import { createRunApprovals } from './run-approvals.ts';

const TASK = 't0-a';

/** Approvals whose terminal answers when told, and withdraws when its signal fires. */
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
    judge: () => ({ decision: 'ask' }),
    onRemoteAnswer: (answer) => remote.push(answer),
  });
  const open = new Set<string>();
  const publish = (question: ApprovalQuestion) => {
    published.push(question);
    open.add(question.callId);
    return () => void open.delete(question.callId);
  };
  const request = (id: string): ApprovalRequest => {
    const input = { command: `touch ${id}` };
    return { call: { id, tool: 'bash', input }, tool: { name: 'bash' }, effects: 'execute', input } as ApprovalRequest;
  };
  const approve = (id: string, signal = new AbortController().signal) =>
    approvals.during({ attempt: TASK, publish }, () => approvals.approve(request(id), { signal }));
  const answer = (callId: string, approved: boolean | string, remember = false): void =>
    approvals.answer(TASK, { type: 'approve', callId, approved, remember });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  return { asked, published, open, remote, approve, answer, turn, type: (given: ApprovalAnswer) => type(given) };
}

test('the first answer counts, wherever it comes from', async () => {
  const { approve, answer, type, turn, published, open, remote } = setUp();
  const first = approve('one');
  await turn();
  expect(published).toMatchObject([{ callId: 'one' }]);
  answer('one', true);
  expect([...open]).toEqual([]);
  answer('one', false);
  expect(await first).toMatchObject({ approved: true });
  const second = approve('two');
  await turn();
  type({ decision: 'no', why: 'use printf' });
  answer('two', true);
  expect(await second).toBe('use printf');
  expect([...open]).toEqual([]);
  expect(remote).toEqual([{ decision: 'yes' }]);
});

test('an answer to another call, before the question or after it, answers nothing', async () => {
  const { approve, answer, type, turn, asked } = setUp();
  answer('one', true);
  const first = approve('one');
  await turn();
  expect(asked).toHaveLength(1);
  answer('other', true);
  type({ decision: 'no' });
  expect(await first).toBe(false);
  answer('one', true);
  expect(asked).toHaveLength(1);
});

test('an always from elsewhere covers what the question says, and a why reaches the model', async () => {
  const { approve, answer, turn, asked } = setUp();
  const denied = approve('one');
  await turn();
  answer('one', 'not today');
  expect(await denied).toBe('not today');
  const allowed = approve('two');
  await turn();
  answer('two', true, true);
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
  answer('one', true);
  expect(await asking).toBe('cancelled before anyone answered');
  expect([...open]).toEqual([]);
});
