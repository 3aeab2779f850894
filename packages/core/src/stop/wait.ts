import type { Clock } from './clock.ts';
import { rankOf, type StopLevel } from './level.ts';
import type { CancellationToken } from './token.ts';

/** How a wait ended: the work did, or the token reached the level first. */
export type WaitEnd<T> =
  | { readonly by: 'value'; readonly value: T }
  | { readonly by: 'error'; readonly error: unknown }
  | { readonly by: 'level'; readonly level: StopLevel };

/**
 * Waits for a promise until the token reaches a level. It never rejects, and the listener leaves with the wait:
 * `Promise.race` against something long-lived would keep every result alive.
 */
export async function waitUnder<T>(
  work: PromiseLike<T>,
  token: CancellationToken,
  until: StopLevel,
): Promise<WaitEnd<T>> {
  let subscription: Disposable | undefined;
  const end = await new Promise<WaitEnd<T>>((resolve) => {
    work.then(
      (value) => resolve({ by: 'value', value }),
      (error: unknown) => resolve({ by: 'error', error }),
    );
    subscription = token.onCancel((level) => {
      if (rankOf(level) >= rankOf(until)) resolve({ by: 'level', level });
    });
  });
  subscription?.[Symbol.dispose]();
  return end;
}

/** Waits for time to pass; throws `CancelledError` as soon as the token is cancelled, at any level. */
export async function sleep(ms: number, options: { clock: Clock; token: CancellationToken }): Promise<void> {
  const { clock, token } = options;
  token.throwIfCancelled();
  let timer: Disposable | undefined;
  const elapsed = new Promise<void>((resolve) => {
    timer = clock.setTimer(ms, resolve);
  });
  await waitUnder(elapsed, token, 'drain');
  timer?.[Symbol.dispose]();
  token.throwIfCancelled();
}
