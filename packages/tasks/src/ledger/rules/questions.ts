import type { AnswerReceipt, Question, QuestionClose } from '../../question.ts';
import type { TaskStatus } from './status.ts';

/**
 * Where a question is. `unread`: the store closed it, and its worker has not journaled that. A question that is not
 * `closed` is in the orders of its task.
 */
export type QuestionState = 'open' | 'answered' | 'unread' | 'closed';

/** What a store keeps on a task that has asked: how many questions are open, and how many its worker must act on. */
export interface QuestionCounts {
  readonly open: number;
  /** Those that are answered or unread. */
  readonly pending: number;
  /** When the first open one expires. */
  readonly expiresAt?: number;
}

/** The state that a question must have when its worker closes it. */
export const CLOSED_FROM: Readonly<Record<QuestionClose['why'], QuestionState>> = {
  answered: 'answered',
  outdated: 'answered',
  journaled: 'unread',
  withdrawn: 'open',
};

/** Returns the receipt for an answer that came after a question was answered or closed. */
export function toTooLate({ answer, closed }: Question): AnswerReceipt {
  const why = closed?.why ?? 'answered';
  if (answer === undefined || why === 'outdated') return { result: 'too-late', why };
  return { result: 'too-late', why: 'answered', given: answer };
}

interface Expiring {
  readonly status?: TaskStatus;
  readonly stage?: string;
  readonly deadline?: number;
  readonly questionCounts?: QuestionCounts;
}

/** Returns when something about a task expires: an open question, or, while it is parked, the task itself. */
export function toExpiry({ stage, deadline = Infinity, questionCounts }: Expiring): number | undefined {
  const at = Math.min(questionCounts?.expiresAt ?? Infinity, stage === 'parked' ? deadline : Infinity);
  return at === Infinity ? undefined : at;
}

/** Returns whether a task is past its deadline and no worker holds it: a worker stops its task itself. */
export function isOverdue({ status, stage, deadline = Infinity }: Expiring, now: number): boolean {
  return deadline <= now && (status === 'init' || stage === 'parked');
}

/** Returns whether something about a task is due: whoever looks at it first makes it happen. */
export function isDue(task: Expiring, now: number): boolean {
  return isOverdue(task, now) || (task.questionCounts?.expiresAt ?? Infinity) <= now;
}
