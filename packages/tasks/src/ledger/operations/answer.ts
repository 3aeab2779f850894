import type { AnswerReceipt, NewAnswer, QuestionRef } from '../../question.ts';
import type { DriverAnswer } from '../driver.ts';
import { toTooLate } from '../rules/questions.ts';
import { cancelTask, toOverdueStop } from './cancel.ts';
import { closeOpen, withCounts } from './questions.ts';
import { sendOrder } from './stage.ts';
import type { OperationContext } from './tables.ts';

/** Answers a question. Only its state decides, never the clock: until it is closed, an answer counts. */
export function applyAnswer(
  { id, task: owner, tenant }: QuestionRef & { readonly task: string },
  given: DriverAnswer,
  context: OperationContext,
): AnswerReceipt {
  const { tables, now } = context;
  const task = tables.task(owner);
  const question = task?.tenant === tenant ? tables.question(owner, id) : undefined;
  if (task === undefined || question === undefined) return { result: 'not-found' };
  // Check this first: since the first request, the question may have been closed and the task may have ended.
  if (question.nonce === given.nonce) return { result: 'accepted', question: id, at: question.answer!.at };
  if (question.state !== 'open') return toTooLate(question);
  const answer = { ...(JSON.parse(given.text) as NewAnswer & { by?: string }), at: now };
  tables.saveQuestion({ ...question, state: 'answered', answer, nonce: given.nonce });
  sendOrder(withCounts(task, tables), 'command', context);
  return { result: 'accepted', question: id, at: now };
}

/** Closes questions that were not answered in time, and cancels parked tasks at their deadline. Returns whether there are more. */
export function expireQuestions(limit: number, context: OperationContext): boolean {
  const { tables, now } = context;
  let first = tables.firstExpired(now);
  for (let expired = 0; first !== undefined && expired < limit; expired++) {
    const task = closeOpen(first, 'expired', context);
    if (task.stage === 'parked' && (task.deadline ?? Infinity) <= now) cancelTask(task, toOverdueStop(now), context);
    else sendOrder(task, 'command', context);
    first = tables.firstExpired(now);
  }
  return first !== undefined;
}
