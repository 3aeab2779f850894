import {
  type AnswerReceipt,
  compareQuestions,
  type NewAnswer,
  type Question,
  type QuestionEnd,
} from '../../../question.ts';
import { toTooLate } from '../../../rules/questions.ts';
import type { Reply } from '../connection/connection.ts';

/** Ids and questions alternate. */
export function toQuestions(flat: readonly string[]): Question[] {
  const questions: Question[] = [];
  for (let i = 0; i < flat.length; i += 2) questions.push(toQuestion(flat[i]!, flat[i + 1]!));
  return questions.toSorted(compareQuestions);
}

/** A question is stored as lines: see `questions.lua`. */
function toQuestion(id: string, text: string): Question {
  const [, why, askedAt, expiresAt, closedAt, answeredAt, , asked, answer] = text.split('\n');
  return {
    id,
    ...(JSON.parse(asked!) as Pick<Question, 'callId' | 'kind' | 'shown'>),
    askedAt: Number(askedAt),
    ...(expiresAt !== '' && { expiresAt: Number(expiresAt) }),
    ...(answer !== '' && {
      answer: { ...(JSON.parse(answer!) as NewAnswer & { by?: string }), at: Number(answeredAt) },
    }),
    ...(why !== '' && { closed: { why: why as QuestionEnd, at: Number(closedAt) } }),
  };
}

export function toAnswerReceipt(reply: Reply, question: string): AnswerReceipt {
  const [answer, value] = reply as [AnswerReceipt['result'], string];
  if (answer === 'accepted') return { result: answer, question, at: Number(value) };
  return answer === 'too-late' ? toTooLate(toQuestion(question, value)) : { result: answer };
}
