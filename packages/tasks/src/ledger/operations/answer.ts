import type { AnswerReceipt, NewAnswer, QuestionRef } from '../../question.ts';
import type { DriverAnswer } from '../driver.ts';
import { toTooLate } from '../rules/questions.ts';
import { applyDue } from './cancel.ts';
import { tellQuestion } from './feed.ts';
import { withCounts } from './questions.ts';
import { sendOrder } from './stage.ts';
import type { OperationContext } from './tables.ts';

/** Answers a question. Its state decides, once what is due has happened. */
export function applyAnswer(
  { id, task: owner, tenant }: QuestionRef & { readonly task: string },
  given: DriverAnswer,
  context: OperationContext,
): AnswerReceipt {
  const { tables, now } = context;
  const found = tables.task(owner);
  const isAsked = found?.tenant === tenant && tables.question(owner, id) !== undefined;
  if (!isAsked) return { result: 'not-found' };
  const task = applyDue(found, context);
  const question = tables.question(owner, id)!;
  // Check this first: since the first request, the question may have been closed and the task may have ended.
  if (question.nonce === given.nonce) return { result: 'accepted', question: id, at: question.answer!.at };
  if (question.state !== 'open') return toTooLate(question);
  const answer = { ...(JSON.parse(given.text) as NewAnswer & { by?: string }), at: now };
  tables.saveQuestion({ ...question, state: 'answered', answer, nonce: given.nonce });
  tellQuestion('question.answered', { task, id: question.id }, context);
  sendOrder(withCounts(task, tables), 'command', context);
  return { result: 'accepted', question: id, at: now };
}
