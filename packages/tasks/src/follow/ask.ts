import { type CancellationToken, sleep } from '@whoa/core';
import { waitUntilLevel } from '@whoa/core/embed';

/** A store that fails is asked again after this; it doubles up to `MAX_RETRY_MS`. */
const RETRY_MS = 50;
const MAX_RETRY_MS = 1_000;

export interface AskOptions {
  readonly token: CancellationToken;
  /** Told each time the store could not be asked; it is asked again. */
  readonly onStoreError: (error: unknown) => void;
}

/** Asks a store something that changes nothing until it answers. Throws `CancelledError` as soon as nobody waits. */
export async function askUntilAnswered<T>(question: () => Promise<T>, options: AskOptions): Promise<T> {
  const { token, onStoreError } = options;
  for (let retryMs = RETRY_MS; ; retryMs = Math.min(2 * retryMs, MAX_RETRY_MS)) {
    token.throwIfCancelled();
    const end = await waitUntilLevel(question(), token, 'drain');
    token.throwIfCancelled();
    if (end.by === 'value') return end.value;
    const { error } = end as { error: unknown };
    if (!isOutage(error)) throw error;
    onStoreError(error);
    await sleep(retryMs, { clock: token.clock, token });
  }
}

const OUTAGES: ReadonlySet<unknown> = new Set(['STORE_BUSY', 'UNKNOWN_OUTCOME']);

/** Goes by the code: two copies of this package may meet. */
function isOutage(error: unknown): boolean {
  return OUTAGES.has((error as { code?: unknown } | undefined)?.code);
}
