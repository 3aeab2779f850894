import { isDeepStrictEqual } from 'node:util';
import { type CancellationToken, isCancelledError, type Json, type Message, type Outcome } from '@whoa/core';
import type { TaskOutcome } from '../task.ts';
import { describeError, entryFor } from './journal/entry.ts';

/** A run's outcome as a store keeps it; `known` is the history as the store has it. */
export function outcomeOfRun(outcome: Outcome, known: readonly Json[]): TaskOutcome {
  const base = { answer: outcome.text, usage: outcome.usage, ...saidIn(outcome.messages, known) };
  if (outcome.status === 'success') return { ...base, status: 'success' };
  if (outcome.status === 'failed') return { ...base, status: 'failed', error: describeError(outcome.error) };
  return {
    ...base,
    status: 'cancelled',
    reason: outcome.reason,
    complete: outcome.complete,
    stop: entryFor(outcome.stop),
    ...(outcome.error !== undefined && { error: describeError(outcome.error) }),
  };
}

/** What became of a function. */
export async function outcomeOfWork(work: Promise<Json | undefined>, token: CancellationToken): Promise<TaskOutcome> {
  try {
    const value = await work;
    const kept = typeof value === 'string' ? { answer: value } : value === undefined ? {} : { result: value };
    return { ...kept, status: 'success' };
  } catch (error) {
    if (token.reason !== undefined && isCancelledError(error)) {
      return { status: 'cancelled', reason: token.reason, complete: false };
    }
    return { status: 'failed', error: describeError(error) };
  }
}

/** What a store must be told so that a history becomes these messages: only what is new, if the rest is as it was. */
export function saidIn(
  messages: readonly Message[],
  known: readonly Json[],
): { readonly said: readonly Json[] } | { readonly history: readonly Json[] } {
  const isLonger = known.every((message, i) => isDeepStrictEqual(message, messages[i]));
  const told = entryFor(isLonger ? messages.slice(known.length) : messages) as readonly Json[];
  return isLonger ? { said: told } : { history: told };
}
