import type { Clock } from '@whoa/core/embed';

/** How many names are kept. Beyond that, the least recently used one is removed. */
const MAX_REMEMBERED = 10_000;
/**
 * How long a refusal for too many requests is delayed. A client that retries on each response then sends one per
 * second: otherwise it would keep the server from all others.
 */
const HELD_BACK_MS = 1_000;
/** The time between delayed responses: clients that are answered together would retry together. */
const SPACING_MS = 10;
/** How many responses are delayed at the same time. Others are sent immediately. */
const MAX_HELD_BACK = 1_000;

interface RateLimitOptions {
  readonly perSecond: number;
  readonly burst: number;
  readonly clock: Clock;
}

/** Limits how often each name may do something per second, with a burst after a pause. */
export class RateLimit {
  readonly #options: RateLimitOptions;
  readonly #left = new Map<string, { readonly count: number; readonly at: number }>();
  #heldBack = 0;
  #lastAt = 0;

  constructor(options: RateLimitOptions) {
    this.#options = options;
  }

  /** Counts one request. Returns 0, or how many milliseconds too early it is. */
  take(name: string): number {
    const { perSecond, burst, clock } = this.#options;
    const now = clock.now();
    const before = this.#left.get(name) ?? { count: burst, at: now };
    const earned = (Math.max(0, now - before.at) / 1_000) * perSecond;
    const count = Math.min(burst, before.count + earned);
    const isEarly = count < 1;
    // Keep the map in order of the last request.
    this.#left.delete(name);
    this.#left.set(name, { count: isEarly ? count : count - 1, at: now });
    if (this.#left.size > MAX_REMEMBERED) this.#left.delete(this.#left.keys().next().value!);
    return isEarly ? ((1 - count) / perSecond) * 1_000 : 0;
  }

  /** Delays a response to a request that was too early: until a while has passed, or the signal is aborted. */
  async holdBack(signal: AbortSignal): Promise<void> {
    if (this.#heldBack >= MAX_HELD_BACK || signal.aborted) return;
    const { clock } = this.#options;
    const { promise, resolve } = Promise.withResolvers<void>();
    const now = clock.now();
    this.#lastAt = Math.max(now + HELD_BACK_MS, this.#lastAt + SPACING_MS);
    const timer = clock.setTimer(this.#lastAt - now, resolve, { keepAlive: false });
    const onAbort = (): void => resolve();
    signal.addEventListener('abort', onAbort, { once: true });
    this.#heldBack++;
    try {
      await promise;
    } finally {
      this.#heldBack--;
      timer[Symbol.dispose]();
      signal.removeEventListener('abort', onAbort);
    }
  }
}
