import { type ErrorHook, reportFailure } from '../stop/hooks.ts';
import type { CancelReason } from '../stop/token/reason.ts';
import type { CallResult } from '../tool/result.ts';

/** What is known about a cancelled run: a part of its outcome, also available when only a store has it. */
export interface CancelledWork {
  readonly reason: CancelReason;
  /** The text of the last reply, complete or not. */
  readonly text: string;
  readonly calls: readonly Pick<CallResult, 'callId' | 'tool' | 'state'>[];
  /** The work had finished or failed before the stop took effect. */
  readonly isComplete: boolean;
}

function describeCancelled({ calls }: Pick<CancelledWork, 'calls'>): string {
  const done = calls.filter(({ state }) => state === 'finished').map(({ tool }) => tool);
  const unknown = calls.filter(({ state }) => state === 'unknown').map(({ tool }) => tool);
  const sentences = [done.length > 0 ? `Stopped. Done so far: ${done.join(', ')}.` : 'Stopped. Nothing was done.'];
  if (unknown.length > 0) sentences.push(`Not known whether it took effect: ${unknown.join(', ')}.`);
  return sentences.join(' ');
}

/**
 * Describes a cancelled run, in the words of the app if it has any.
 *
 * @returns The text for the user.
 */
export function describeStop<Work extends CancelledWork>(
  work: Work,
  { describeCancel, hooks }: { describeCancel?: ((work: Work) => string) | undefined; hooks?: ErrorHook | undefined },
): string {
  try {
    if (describeCancel !== undefined) return describeCancel(work);
  } catch (error) {
    reportFailure(hooks, 'describeCancel', error);
  }
  return describeCancelled(work);
}
