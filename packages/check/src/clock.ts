import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';

const POLL_INTERVAL_MS = 5;

/**
 * Waits at most so long until something is true. Returns whether it is.
 *
 * Time is counted in polls, and each follows what has arrived: a process that was stopped or hardly gets to run has as many as
 * any other.
 */
export async function until(ms: number, isTrue: () => boolean): Promise<boolean> {
  for (let polls = ms / POLL_INTERVAL_MS; polls > 0 && !isTrue(); polls--) {
    await wait(POLL_INTERVAL_MS);
    await turn();
  }
  return isTrue();
}

/** Waits at most so long for a promise. Returns whether it came in time; a rejection counts as that. */
export function within(ms: number, promise: PromiseLike<unknown>): Promise<boolean> {
  let isSettled = false;
  const settle = (): boolean => (isSettled = true);
  return Promise.race([promise.then(settle, settle), until(ms, () => isSettled)]);
}
