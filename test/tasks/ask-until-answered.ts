import { setTimeout as wait } from 'node:timers/promises';

const RETRY_DELAY_MS = 50;

/**
 * Asks until the store answers: what it could not do yet, and what it may have done, is asked again. `isGrowing`: so is what
 * was refused because its shards are not the ones of now.
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
