import type { Clock } from '@whoa/core/embed';

/** How long what is refused for its number is held back: whoever asks again with the answer asks once a second. */
const HELD_BACK_MS = 1_000;
/** They come this far apart: those who were answered together would ask together. */
const APART_MS = 10;
/** So many are held back at once; the others are answered at once. */
const MAX_HELD_BACK = 1_000;

/** Holds answers back for those who ask too often: one who does not wait would keep the server from all others. */
export class HeldBack {
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
    this.#lastAt = Math.max(now + HELD_BACK_MS, this.#lastAt + APART_MS);
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
