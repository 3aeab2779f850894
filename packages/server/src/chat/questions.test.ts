import { expect, test } from 'vitest';
import { answerQuestion } from './questions.ts';

type Chat = Parameters<typeof answerQuestion>[0];

const who = { name: 'ada', tenant: 'ada', rights: new Set() } as unknown as Parameters<typeof answerQuestion>[1];
const answer = { chatId: 'c', approvalId: 't-a.1', decision: 'yes' } as const;

test.for([
  [{ result: 'too-late', why: 'answered', given: { value: {}, by: 'bob', at: 1 } }, 'too-late', /answered by bob/],
  [{ result: 'too-late', why: 'expired' }, 'too-late', /in time/],
  [{ result: 'not-found' }, 'not-pending', /no such question/],
] as const)('an answer to which the store responds %j fails with its own code', async ([receipt, code, message]) => {
  const store = { get: () => Promise.resolve({ conversation: 'c' }), answer: () => Promise.resolve(receipt) };
  const chat = { store, access: { audit: () => {} } } as unknown as Chat;
  await expect(answerQuestion(chat, who, answer)).rejects.toMatchObject({
    status: 409,
    code,
    message: expect.stringMatching(message) as string,
  });
});
