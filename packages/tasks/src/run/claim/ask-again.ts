import type { Clock } from '@whoa/core/embed';

/** How often a request is repeated when its response keeps getting lost. */
const MAX_ASKED = 5;
const RETRY_MS = 100;

export interface AskAgainOptions {
  readonly clock: Clock;
  readonly onStoreError: (error: unknown) => void;
}

/** Repeats a request while its response is lost. Only for requests that count once however often they are repeated. */
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

/** Compares the code, not the class: two copies of this package may be loaded. */
function isUnknownOutcome(error: unknown): boolean {
  return (error as { code?: unknown } | undefined)?.code === 'UNKNOWN_OUTCOME';
}
