import { sleep } from '@whoa/core';
import { RETRY_DELAY_MS, type WorkerContext } from './worker-context.ts';

/** How often a request is repeated when its response keeps getting lost. */
const MAX_ASKED = 5;

type AskingContext = Pick<WorkerContext, 'world' | 'onStoreError'>;

/** Repeats a request while its response is lost. Only for requests that count once however often they are repeated. */
export async function retryLostResponse<T>(ask: () => Promise<T>, { world, onStoreError }: AskingContext): Promise<T> {
  for (let asked = 1; ; asked++) {
    try {
      return await ask();
    } catch (error) {
      if (!isUnknownOutcome(error) || asked >= MAX_ASKED) throw error;
      onStoreError(error);
    }
    await sleep(RETRY_DELAY_MS, { clock: world.clock });
  }
}

/** Compares the code, not the class: two copies of this package may be loaded. */
function isUnknownOutcome(error: unknown): boolean {
  return (error as { code?: unknown } | undefined)?.code === 'UNKNOWN_OUTCOME';
}
