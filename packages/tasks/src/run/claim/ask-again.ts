import type { Clock } from '@whoa/core/embed';

/** How often something is asked whose answer keeps getting lost. */
const MAX_ASKED = 5;
const RETRY_MS = 100;

export interface AskAgainOptions {
  readonly clock: Clock;
  readonly onStoreError: (error: unknown) => void;
}

/** Asks again while the answer is lost on the way. Only for what counts once however often it is asked. */
export async function askAgain<T>(ask: () => Promise<T>, { clock, onStoreError }: AskAgainOptions): Promise<T> {
  for (let asked = 1; ; asked++) {
    try {
      return await ask();
    } catch (error) {
      if (!isUnknownOutcome(error) || asked >= MAX_ASKED) throw error;
      onStoreError(error);
    }
    await new Promise<void>((resolve) => clock.setTimer(RETRY_MS, resolve));
  }
}

/** Goes by the code: two copies of this package may meet. */
function isUnknownOutcome(error: unknown): boolean {
  return (error as { code?: unknown } | undefined)?.code === 'UNKNOWN_OUTCOME';
}
