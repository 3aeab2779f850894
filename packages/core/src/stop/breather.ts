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
export class Breather implements Disposable {
  readonly #clock: Clock;
  /** Resolves when the event loop has turned; there is one only while that is awaited. */
  #turn: { readonly since: number; readonly ended: Promise<void>; readonly timer: Disposable } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What to wait for before going on, if the event loop has not turned for too long. */
  breathe(): Promise<void> | undefined {
    const now = this.#clock.now();
    if (this.#turn === undefined) {
      const { promise: ended, resolve } = Promise.withResolvers<void>();
      const timer = this.#clock.setTimer(0, () => {
        this.#turn = undefined;
        resolve();
      });
      this.#turn = { since: now, ended, timer };
    }
    return now - this.#turn.since < HOLD_MS ? undefined : this.#turn.ended;
  }

  [Symbol.dispose](): void {
    this.#turn?.timer[Symbol.dispose]();
    this.#turn = undefined;
  }
}
