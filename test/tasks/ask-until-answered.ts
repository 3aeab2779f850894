import { setTimeout as wait } from 'node:timers/promises';

const RETRY_DELAY_MS = 50;

/** Retries while the store is unavailable or the result is unknown. */
export async function retryWhileUnavailable<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const { code } = error as { code?: string };
      if (code !== 'UNKNOWN_OUTCOME' && code !== 'STORE_BUSY') throw error;
    }
    await wait(RETRY_DELAY_MS);
  }
}
