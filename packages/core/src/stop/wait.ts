import { type Clock, isNever, NEVER, systemClock } from './clock.ts';
import { rankLevel, type StopLevel } from './token/level.ts';
import type { CancellationToken } from './token/token.ts';

/** How a wait ended: the work settled, or the token reached the level first. */
export type WaitResult<T> =
  | { readonly by: 'value'; readonly value: T }
  | { readonly by: 'error'; readonly error: unknown }
  | { readonly by: 'level'; readonly level: StopLevel };

/**
 * Waits for a promise until the token reaches a level. The listener is removed with the wait: `Promise.race` against a
 * long-lived promise would keep every result alive.
 *
 * @returns How the wait ended: the promise settled, or the token reached the level. It never rejects.
 */
export function waitUntilLevel<T>(
  work: PromiseLike<T>,
  token: CancellationToken,
  until: StopLevel,
): Promise<WaitResult<T>> {
  return new Promise((resolve) => {
    let isOver = false;
    let subscription: Disposable | undefined;
    const end = (result: WaitResult<T>): void => {
      isOver = true;
      subscription?.[Symbol.dispose]();
      resolve(result);
    };
    work.then(
      (value) => end({ by: 'value', value }),
      (error: unknown) => end({ by: 'error', error }),
    );
    subscription = token.onCancel((level) => {
      if (rankLevel(level) >= rankLevel(until)) end({ by: 'level', level });
    });
    // A token that was already at the level called back before `subscription` was set.
    if (isOver) subscription[Symbol.dispose]();
  });
}

export function isPromiseLike(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/**
 * Waits for time to pass.
 *
 * @returns A promise that resolves after `ms`.
 * @throws {@link CancelledError} as soon as the token, if there is one, is cancelled at any level.
 *
 * @example
 * ```ts
 * import { sleep } from '@whoa/core';
 *
 * await sleep(1_000, { token });
 * ```
 */
export async function sleep(
  ms: number,
  options: { token?: CancellationToken | undefined; clock?: Clock | undefined } = {},
): Promise<void> {
  const { token, clock = token?.clock ?? systemClock } = options;
  const { promise: elapsed, resolve } = Promise.withResolvers<void>();
  const timer = isNever(ms) ? NEVER : clock.setTimer(ms, resolve);
  if (token === undefined) return elapsed;
  await waitUntilLevel(elapsed, token, 'drain');
  timer[Symbol.dispose]();
  token.throwIfCancelled();
}

/** Waits for work, for at most `ms`. Rejects if the work does before that. */
export async function waitAtMost(work: PromiseLike<unknown>, ms: number, clock: Clock = systemClock): Promise<void> {
  const { promise: elapsed, resolve } = Promise.withResolvers<void>();
  const timer = isNever(ms) ? NEVER : clock.setTimer(ms, resolve);
  try {
    await Promise.race([work, elapsed]);
  } finally {
    timer[Symbol.dispose]();
  }
}
