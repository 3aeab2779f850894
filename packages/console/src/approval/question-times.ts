import type { Question } from '@whoa/tasks';
import { formatDuration } from '../model/format.ts';

/** Since when a question waits, and for how long yet. */
export function describeWait({ askedAt, expiresAt }: Question, now: number): string {
  const asked = `Asked ${formatDuration(now - askedAt)} ago`;
  if (expiresAt === undefined) return `${asked}; waits until the task ends`;
  return now < expiresAt ? `${asked}; closes in ${formatDuration(expiresAt - now)}` : `${asked}; its time is up`;
}

/** What happened to a question in the end. */
export const QUESTION_ENDS: Readonly<Record<NonNullable<Question['closed']>['why'], string>> = {
  answered: 'the worker acted on it',
  outdated: 'what would run had changed; asked again, or no longer needed',
  expired: 'no one answered in time',
  withdrawn: 'a newer message came, or the call was stopped',
  cancelled: 'the task was cancelled first',
  ended: 'the task ended first',
};

/** What a person said: `yes`, or `no: too dear`. */
export function describeAnswer({ value }: NonNullable<Question['answer']>): string {
  const { decision, why } = (value ?? {}) as { readonly decision?: unknown; readonly why?: unknown };
  const answer = typeof decision === 'string' ? decision : JSON.stringify(value);
  return typeof why === 'string' ? `${answer}: ${why}` : answer;
}
