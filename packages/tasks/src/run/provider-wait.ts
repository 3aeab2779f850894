import type { Outcome, RunEvent } from '@whoa/core';
import type { World } from '@whoa/core/embed';
import type { ModelError } from '@whoa/core/model';
import type { ProviderWait } from '../task.ts';
import type { ClaimHolder } from './claim-holder.ts';
import type { PostponedTurn } from './journal/journal-event.ts';
import type { RunnerOptions } from './runner.ts';

interface WaiterOptions {
  readonly rule: NonNullable<RunnerOptions['waitForProvider']>;
  readonly world: World;
  readonly holder: ClaimHolder;
  /** What it waited for before, without a complete reply since. */
  readonly before: ProviderWait | undefined;
}

/** The first wait, and the longest that doubling it reaches. */
const BACKOFF_MS = 5_000;
const MAX_BACKOFF_MS = 60_000;
/** Longer messages of providers are cut in the record of a task. */
const MAX_ERROR_CHARACTERS = 300;

/** Decides whether a task waits for the provider of its model when its run has failed. */
export class ProviderWaiter {
  /** How long no worker takes the task; `undefined` if it does not wait. */
  delayMs: number | undefined;
  readonly #options: WaiterOptions;
  /** The end of a failed turn and what follows, until it is known whether the turn is repeated. */
  #held: RunEvent[] = [];
  #before: ProviderWait | undefined;

  constructor(options: WaiterOptions) {
    this.#options = options;
    this.#before = options.before;
  }

  /**
   * Returns what to record when an event comes. A turn that is repeated is recorded as one that was cut off, so readers
   * drop its text when the next worker starts it again.
   */
  filter(event: RunEvent): readonly (RunEvent | PostponedTurn)[] {
    const stopReason = event.type === 'turn-end' ? event.message.stopReason : undefined;
    const isFailure = stopReason === 'error';
    if (stopReason !== undefined && !isFailure && stopReason !== 'aborted') this.#before = undefined;
    if (event.type === 'run-end') {
      const postponed = this.#postpone(event.outcome);
      return postponed === undefined ? [...this.#held, event] : [postponed, event];
    }
    if (!isFailure && this.#held.length === 0) return [event];
    this.#held.push(event);
    return [];
  }

  #postpone(outcome: Outcome): PostponedTurn | undefined {
    const { rule, world, holder } = this.#options;
    const error = outcome.status === 'failed' ? findModelError(outcome.error) : undefined;
    if (error?.isRetryable !== true) return undefined;
    const { maxMs, backoffMs = BACKOFF_MS, maxBackoffMs = MAX_BACKOFF_MS } = rule;
    const { retryAfterMs = 0, message } = error;
    // The store's time: workers compare it, and their clocks differ.
    const now = Math.max(0, Math.round(holder.storeNow()));
    const { since = now, attempts = 0 } = this.#before ?? {};
    // That clock may have been set back.
    const leftMs = Math.min(maxMs, since + maxMs - now);
    if (leftMs <= 0 || retryAfterMs > leftMs) return undefined;
    const grownMs = Math.min(backoffMs * 2 ** attempts, maxBackoffMs);
    // Up to twice as long: tasks that failed together must not come back together.
    const waitMs = Math.max(grownMs, retryAfterMs) * (1 + world.random());
    this.delayMs = Math.max(1, Math.ceil(Math.min(waitMs, leftMs)));
    // What the failed reply has cost counts, though its end is not recorded.
    for (const one of this.#held) holder.activity.countTokens(one);
    const about = { error: message.slice(0, MAX_ERROR_CHARACTERS), since, attempts: attempts + 1 };
    return { type: 'turn-postponed', ...about, until: now + this.delayMs };
  }
}

/** Finds the failure of a model in the error of a run. By its code: an adapter may use another copy of the class. */
function findModelError(error: unknown): ModelError | undefined {
  const { cause } = (error ?? {}) as { readonly cause?: unknown };
  return [error, cause].find((one): one is ModelError => (one as ModelError | undefined)?.code === 'MODEL_ERROR');
}
