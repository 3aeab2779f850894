import type { Clock } from '@whoa/core/embed';

/**
 * How long a refusal for too many requests is delayed. A client that retries on each response then sends one per
 * second.
 */
const HELD_BACK_MS = 1_000;
/** The time between delayed responses: clients that are answered together would retry together. */
const SPACING_MS = 10;
/** How many responses are delayed at the same time. Others are sent immediately. */
const MAX_HELD_BACK = 1_000;

/**
 * Delays responses to clients that send too many requests: one that does not wait would keep the server from all
 * others.
 */
export class RateLimitDelay {
  readonly #clock: Clock;
  #count = 0;
  #lastAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves after a while, or as soon as the signal is aborted. */
  async wait(signal: AbortSignal): Promise<void> {
    if (this.#count >= MAX_HELD_BACK || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const now = this.#clock.now();
    this.#lastAt = Math.max(now + HELD_BACK_MS, this.#lastAt + SPACING_MS);
    const timer = this.#clock.setTimer(this.#lastAt - now, resolve, { keepAlive: false });
    const onAbort = (): void => resolve();
    signal.addEventListener('abort', onAbort, { once: true });
    this.#count++;
    try {
      await promise;
    } finally {
      this.#count--;
      timer[Symbol.dispose]();
      signal.removeEventListener('abort', onAbort);
    }
  }
}
