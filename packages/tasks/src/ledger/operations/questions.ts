import { QuestionRefusedError } from '../../errors.ts';
import type { Question, QuestionEnd } from '../../question.ts';
import type { DriverBatch } from '../driver.ts';
import { CLOSED_FROM, type QuestionCounts } from '../rules/questions.ts';
import { LIMITS } from '../rules/rules.ts';
import { tellQuestion } from './feed.ts';
import type { OperationContext, StoredQuestion, StoredTask, Tables } from './tables.ts';
import { toQuestion } from './views.ts';

/** Asks and closes the questions of a batch. Throws before it writes if the batch may not. Returns the task, not saved. */
export function applyQuestions(
  task: StoredTask,
  { asks, closes, done, declined }: DriverBatch,
  { tables, now }: OperationContext,
): StoredTask {
  if (asks.length === 0 && closes.length === 0) return task;
  const closed = closes.map(({ id, why }) => {
    const question = tables.question(task.id, id);
    if (question?.state !== CLOSED_FROM[why]) return undefined;
    return { ...question, state: 'closed' as const, ...(why !== 'journaled' && { closed: { why, at: now } }) };
  });
  const isNew = asks.every(({ id }) => tables.question(task.id, id) === undefined);
  const open = (task.questionCounts?.open ?? 0) + asks.length;
  if (task.status !== 'running') throw new QuestionRefusedError(task.id, 'stopping');
  if (!isNew || closed.includes(undefined)) throw new QuestionRefusedError(task.id, 'changed');
  const isUnread = task.commands.some(
    ({ type, number }) => type === 'steer' && !done.includes(number) && !declined.includes(number),
  );
  // The model reads it first. So a parked task has no unread message, and no one waits for an answer with one.
  if (asks.length > 0 && isUnread) throw new QuestionRefusedError(task.id, 'unread');
  if (open > LIMITS.maxOpenQuestions) throw new QuestionRefusedError(task.id, 'full');
  const { id: owner, tenant } = task;
  for (const question of closed) {
    tables.saveQuestion(question!);
    if (question!.closed?.why === 'withdrawn')
      tellQuestion('question.closed', { task, id: question!.id }, { tables, now });
  }
  for (const { id, asked, expiresMs } of asks) {
    const about = JSON.parse(asked) as Pick<Question, 'callId' | 'kind' | 'shown'>;
    const times = { askedAt: now, ...(expiresMs !== undefined && { expiresAt: now + expiresMs }) };
    tables.saveQuestion({ id, task: owner, tenant, ...about, ...times, state: 'open' });
    tellQuestion('question.asked', { task, id }, { tables, now });
  }
  return withCounts(task, tables);
}

/** Closes open questions of a task. Returns the task, not saved; the same if there were none. */
export function closeOpen(
  task: StoredTask,
  why: Extract<QuestionEnd, 'expired' | 'withdrawn' | 'cancelled'>,
  { tables, now }: Pick<OperationContext, 'tables' | 'now'>,
): StoredTask {
  if (!task.questionCounts?.open) return task;
  // Its worker settles a cancelled task: there is nothing to journal for each question.
  const state = why === 'cancelled' ? 'closed' : 'unread';
  const isMeant = (one: StoredQuestion): boolean =>
    one.state === 'open' && (why !== 'expired' || (one.expiresAt ?? Infinity) <= now);
  const meant = tables.liveQuestions(task.id).filter(isMeant);
  for (const one of meant) {
    const end = (one.expiresAt ?? Infinity) <= now ? 'expired' : why;
    tables.saveQuestion({ ...one, state, closed: { why: end, at: now } });
    tellQuestion('question.closed', { task, id: one.id }, { tables, now });
  }
  return meant.length === 0 ? task : withCounts(task, tables);
}

/** Closes what is left of the questions of a task that ends. Returns the task, not saved. */
export function endQuestions(task: StoredTask, { tables, now }: Pick<OperationContext, 'tables' | 'now'>): StoredTask {
  if (!isLive(task)) return task;
  for (const one of tables.liveQuestions(task.id)) {
    tables.saveQuestion({ ...one, state: 'closed', closed: one.closed ?? { why: 'ended', at: now } });
    if (one.state === 'open') tellQuestion('question.closed', { task, id: one.id }, { tables, now });
  }
  return withCounts(task, tables);
}

/** Returns the questions that the worker of a task must know; none for most tasks. */
export function questionsFor(task: StoredTask, tables: Tables): Question[] {
  return isLive(task) ? tables.liveQuestions(task.id).map(toQuestion) : [];
}

function isLive({ questionCounts }: StoredTask): boolean {
  return questionCounts !== undefined && questionCounts.open + questionCounts.pending > 0;
}

/** Returns a task with what its questions are now. */
export function withCounts(task: StoredTask, tables: Tables): StoredTask {
  const live = tables.liveQuestions(task.id);
  const open = live.filter(({ state }) => state === 'open');
  const expiresAt = Math.min(...open.map((one) => one.expiresAt ?? Infinity));
  const counts = { open: open.length, pending: live.length - open.length };
  const questionCounts: QuestionCounts = expiresAt === Infinity ? counts : { ...counts, expiresAt };
  return { ...task, questionCounts };
}
