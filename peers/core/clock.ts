import { setTimeout as wait } from 'node:timers/promises';

/** Milliseconds since the epoch, the same in every process, and finer than `Date.now()`. */
export const now = (): number => performance.timeOrigin + performance.now();

const LOOK_EVERY_MS = 5;

/**
 * Waits until something is true. Returns false if it was not so in time.
 *
 * Time is counted in looks: a process that hardly gets to run has as many as any other.
 */
export async function until(isTrue: () => boolean, ms: number): Promise<boolean> {
  for (let looks = ms / LOOK_EVERY_MS; looks > 0 && !isTrue(); looks--) await wait(LOOK_EVERY_MS);
  return isTrue();
}

/** Waits for a promise. Returns undefined if it took longer. */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  let isSettled = false;
  const settle = (): void => {
    isSettled = true;
  };
  promise.then(settle, settle);
  return (await until(() => isSettled, ms)) ? promise : undefined;
}
