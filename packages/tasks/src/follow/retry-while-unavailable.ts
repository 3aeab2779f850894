import { type CancellationToken, sleep } from '@whoa/core';
import { waitUntilLevel } from '@whoa/core/embed';

/** The first pause before a failed request is retried. It doubles up to `MAX_RETRY_MS`. */
const RETRY_DELAY_MS = 50;
const MAX_RETRY_MS = 1_000;

export interface AskOptions {
  readonly token: CancellationToken;
  /** Called each time a request to the store failed; it is retried. */
  readonly onStoreError: (error: unknown) => void;
}

/** Retries a read-only request until the store responds. Throws `CancelledError` as soon as no caller waits. */
export async function retryWhileUnavailable<T>(question: () => Promise<T>, options: AskOptions): Promise<T> {
  const { token, onStoreError } = options;
  for (let retryMs = RETRY_DELAY_MS; ; retryMs = Math.min(2 * retryMs, MAX_RETRY_MS)) {
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

/** Compares the code, not the class: two copies of this package may be loaded. */
function isOutage(error: unknown): boolean {
  return OUTAGES.has((error as { code?: unknown } | undefined)?.code);
}
