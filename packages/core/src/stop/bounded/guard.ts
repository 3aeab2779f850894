import { systemWorld } from '../clock.ts';
import { CallTimeoutError, CancelledError } from '../errors.ts';
import { callback, nonEmptyText, oneOf, type Rules, readSettings, required, timeLimitMs } from '../settings.ts';
import type { StopLevel } from '../token/level.ts';
import type { CancelReason } from '../token/reason.ts';
import { shieldMs } from '../token/shield.ts';
import { SOURCE_RULES, tokenFor } from '../token/source.ts';
import type { CancellationToken } from '../token/token.ts';
import { warn } from '../warn.ts';
import { type BoundedResult, checkFinishBound, runBounded, type WhenCancelled, type WorkContext } from './bounded.ts';
import { CLEANUP_MS } from './cleanup.ts';
import { type LateResults, lateResultsRule, recordAbandoned } from './late-results.ts';

/** Options of `guard`. */
export interface GuardOptions {
  /** The name used in errors and late results. */
  readonly name: string;
  /** Defaults to `interrupt`. `finish` needs `timeoutMs`. */
  readonly whenCancelled?: WhenCancelled | undefined;
  /** After this it is asked to stop, and abandoned `graceMs` later (`finish`: immediately). */
  readonly timeoutMs?: number | undefined;
  /** Defaults to 2,000. With 0, `timeoutMs` is the longest that you wait, even for a function that ignores its signal. */
  readonly graceMs?: number | undefined;
  readonly cleanupTimeoutMs?: number | undefined;
  /** Records abandoned work and its late result. */
  readonly lateResults?: LateResults | undefined;
  /** The unique key in the late results. Defaults to a generated one. */
  readonly key?: string | undefined;
  /** The idempotency key that the function gets: pass that of an earlier attempt again. Defaults to a new one. */
  readonly effectKey?: string | undefined;
  /** Called when a cancel has to wait for this `finish` work. */
  readonly onWait?: ((level: StopLevel, reason: CancelReason) => void) | undefined;
  /** Cancels the work: a token, a signal (which means `now`), or both. */
  readonly token?: CancellationToken | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The context of a guarded function. */
export interface GuardContext extends WorkContext {
  /** Identifies its effect in the outside world: an idempotency key. */
  readonly effectKey: string;
}

/**
 * Gives any async function a time limit and a cancel, even one that does not support cancellation.
 *
 * It resolves and rejects as the function does. When cancelled it rejects, at the latest when the ladder ends, and a
 * late result changes nothing: the error's `effect` is then `unknown`.
 *
 * @returns What the function returns.
 * @throws {@link CancelledError} when the token was cancelled; {@link CallTimeoutError} when `timeoutMs` passed; {@link
 * SettingsError} when an option is not valid.
 *
 * @example
 * ```ts
 * import { guard } from '@whoa/core';
 *
 * const page = await guard(({ signal }) => fetch('https://example.com', { signal }), {
 *   name: 'fetch page',
 *   token,
 *   timeoutMs: 5_000,
 * });
 * ```
 */
export async function guard<T>(
  execute: (context: GuardContext) => T | PromiseLike<T>,
  given: GuardOptions,
): Promise<T> {
  callback(execute, 'execute');
  const options = readSettings<GuardOptions>(given, GUARD_RULES);
  checkFinishBound(options);
  const { name, whenCancelled, timeoutMs, graceMs, cleanupTimeoutMs = CLEANUP_MS } = options;
  const token = tokenFor(options, { name });
  try {
    const shared = { token, name, whenCancelled, timeoutMs, graceMs, cleanupTimeoutMs };
    return await runBounded<T, T>({
      ...shared,
      execute: (context) => execute(Object.assign(context, { effectKey: options.effectKey ?? systemWorld.createId() })),
      onCleanupError: warn,
      ...(options.onWait && { onWait: options.onWait }),
      onEnd(end) {
        if (end.state === 'unknown' && options.lateResults !== undefined) {
          const { key = `guard/${systemWorld.createId()}` } = options;
          recordAbandoned(options.lateResults, { key, name, reason: end.reason, abandonedAt: token.clock.now() }, end);
        }
        return valueFrom(end, options, token);
      },
    });
  } finally {
    token[Symbol.dispose]();
  }
}

const GUARD_RULES: Rules<GuardOptions> = {
  name: required(nonEmptyText),
  whenCancelled: oneOf('interrupt', 'finish'),
  timeoutMs: timeLimitMs,
  graceMs: timeLimitMs,
  cleanupTimeoutMs: shieldMs,
  lateResults: lateResultsRule,
  key: nonEmptyText,
  effectKey: nonEmptyText,
  onWait: callback,
  ...SOURCE_RULES,
};

function valueFrom<T>(end: BoundedResult<T>, options: GuardOptions, token: CancellationToken): T {
  if (end.state === 'finished') return end.value;
  if (end.state === 'failed' || end.state === 'refused') throw end.error;
  const { state } = end;
  const cause = state === 'interrupted' ? end.error : undefined;
  if (!token.isCancelled && options.timeoutMs !== undefined && state !== 'not-started')
    throw new CallTimeoutError(options.name, options.timeoutMs, { state, cause });
  const effect = state === 'unknown' ? state : undefined;
  throw new CancelledError(token.reason ?? end.reason, { partial: { state }, cause, effect });
}
