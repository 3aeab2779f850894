import type { Clock } from './clock.ts';

/**
 * How long work that never waits for anything outside may hold the event loop. A cancel may wait through several holds: a
 * socket needs a turn to be readable and another to be read, and a timer may stand behind the one that ends the rest.
 */
const HOLD_MS = 10;

/**
 * For loops that may never leave the microtask queue, when everything they wait for is there already. Without a rest no
 * timer, signal or message would be heard, and nobody outside could cancel. Loops that do wait are not held up.
 */
export class LoopYielder implements Disposable {
  readonly #clock: Clock;
  /** Resolves when the event loop has turned; there is one only while that is awaited. */
  #pending: { readonly since: number; readonly ended: Promise<void>; readonly timer: Disposable } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What to wait for before going on, if the event loop has not turned for too long. */
  yieldIfDue(): Promise<void> | undefined {
    const now = this.#clock.now();
    if (this.#pending === undefined) {
      const { promise: ended, resolve } = Promise.withResolvers<void>();
      const timer = this.#clock.setTimer(0, () => {
        this.#pending = undefined;
        resolve();
      });
      this.#pending = { since: now, ended, timer };
    }
    return now - this.#pending.since < HOLD_MS ? undefined : this.#pending.ended;
  }

  [Symbol.dispose](): void {
    this.#pending?.timer[Symbol.dispose]();
    this.#pending = undefined;
  }
}
