import { setTimeout as wait } from 'node:timers/promises';

const RETRY_DELAY_MS = 50;

/**
 * Retries while the store is unavailable or the result is unknown. `isGrowing`: also while requests are rejected
 * because the shards have changed.
 */
export async function retryWhileUnavailable<T>(ask: () => Promise<T>, { isGrowing = false } = {}): Promise<T> {
  const again = new Set<string | undefined>(['UNKNOWN_OUTCOME', 'STORE_BUSY', ...(isGrowing ? ['STORE_SETUP'] : [])]);
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const { code } = error as { code?: string };
      if (!again.has(code)) throw error;
    }
    await wait(RETRY_DELAY_MS);
  }
}
