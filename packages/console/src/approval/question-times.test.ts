import type { Question } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { describeAnswer, describeWait, QUESTION_ENDS } from './question-times.ts';

const QUESTION: Question = { id: 't-a.1', callId: 'c', kind: 'approve', askedAt: 1_000, shown: 'x' };

test('a question shows since when it waits, and how long it has left', () => {
  expect(describeWait(QUESTION, 61_000)).toBe('Asked 1 m 00 s ago; waits until the task ends');
  const until = { ...QUESTION, expiresAt: 3_661_000 };
  expect(describeWait(until, 61_000)).toBe('Asked 1 m 00 s ago; closes in 1 h 00 m');
  expect(describeWait(until, 3_661_000)).toBe('Asked 1 h 01 m ago; its time is up');
});

test('an answer is shown as it was given, also an odd one', () => {
  const answer = (value: never): string => describeAnswer({ value, at: 1 });
  expect(answer({ decision: 'no', why: 'too dear' } as never)).toBe('no: too dear');
  expect(answer({ decision: 'always' } as never)).toBe('always');
  expect(answer(true as never)).toBe('true');
});

test('how a question closed is described in words', () => {
  expect(QUESTION_ENDS.expired).toBe('no one answered in time');
});
