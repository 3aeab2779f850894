import { isDeepStrictEqual } from 'node:util';
import {
  type CancellationToken,
  isCancelledError,
  type Json,
  type Message,
  type Outcome,
  type Usage,
} from '@whoa/core';
import { addUsage } from '@whoa/core/internal';
import type { TaskOutcome, TaskSpending, TaskSummary } from '../task.ts';
import { entryFor, toErrorData } from './journal/entry.ts';

/**
 * Converts a run's outcome to what a store keeps. `known` is the history that the store already has, `before` what
 * earlier runs of the task have used.
 */
export function outcomeOfRun(outcome: Outcome, known: readonly Json[], before: Usage): TaskOutcome {
  const base = {
    answer: outcome.text,
    usage: addUsage(before, outcome.usage),
    ...(outcome.spending && { spending: withoutLimit(outcome.spending) }),
    ...toNewMessages(outcome.messages, known),
  };
  if (outcome.status === 'success') return { ...base, status: 'success' };
  if (outcome.status === 'failed') return { ...base, status: 'failed', error: toErrorData(outcome.error) };
  return {
    ...base,
    status: 'cancelled',
    reason: outcome.reason,
    isComplete: outcome.isComplete,
    stopReport: entryFor(outcome.stop),
    ...(outcome.error !== undefined && { error: toErrorData(outcome.error) }),
  };
}

/** Returns what the lost workers of a task had used. */
export function usedBefore({ activity }: Pick<TaskSummary, 'activity'>): Pick<TaskOutcome, 'usage' | 'spending'> {
  const { usage, spending } = activity ?? {};
  return { ...(usage && { usage }), ...(spending && { spending: spentAsReserved(spending) }) };
}

/** A request whose worker was lost counts as reserved. */
export function spentAsReserved({ spent, estimated, reserved }: TaskSpending): TaskSpending {
  return { spent: spent + reserved, estimated: estimated + reserved, reserved: 0 };
}

export function withoutLimit({ spent, estimated, reserved }: TaskSpending): TaskSpending {
  return { spent, estimated, reserved };
}

/** Converts the result of a function. */
export async function outcomeOfWork(work: Promise<Json | undefined>, token: CancellationToken): Promise<TaskOutcome> {
  try {
    const value = await work;
    const kept = typeof value === 'string' ? { answer: value } : value === undefined ? {} : { result: value };
    return { ...kept, status: 'success' };
  } catch (error) {
    if (token.reason !== undefined && isCancelledError(error)) {
      return { status: 'cancelled', reason: token.reason, isComplete: false };
    }
    return { status: 'failed', error: toErrorData(error) };
  }
}

/**
 * Returns the change that turns the stored history into these messages: only the new ones, if the rest is unchanged.
 */
export function toNewMessages(
  messages: readonly Message[],
  known: readonly Json[],
): { readonly newMessages: readonly Json[] } | { readonly history: readonly Json[] } {
  const isLonger = known.every((message, i) => isDeepStrictEqual(message, messages[i]));
  const entries = entryFor(isLonger ? messages.slice(known.length) : messages) as readonly Json[];
  return isLonger ? { newMessages: entries } : { history: entries };
}
