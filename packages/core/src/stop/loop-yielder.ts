import { type Clock, NEVER, systemClock } from './clock.ts';
import { onLoopTurn } from './event-loop.ts';

/**
 * How long work that never waits for I/O may hold the event loop. A cancel may be delayed by several such holds: a
 * socket takes one turn to become readable and another to be read, and a timer may be queued behind others.
 */
const HOLD_MS = 10;

/**
 * For loops that may never leave the microtask queue because everything they await is already there. Without a yield,
 * no timer, signal or message would be processed, and no caller could cancel. Loops that do wait are not slowed down.
 */
export class LoopYielder implements Disposable {
  readonly #clock: Clock;
  /** Resolves after the event loop has turned. Set only while a caller awaits it. */
  #pending: { readonly since: number; readonly ended: Promise<void>; readonly timer: Disposable } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns what to await before continuing, if the event loop has not turned for too long. */
  yieldIfDue(): Promise<void> | undefined {
    const now = this.#clock.now();
    if (this.#pending === undefined) {
      const { promise: ended, resolve } = Promise.withResolvers<void>();
      const turned = (): void => {
        this.#pending = undefined;
        resolve();
      };
      // No timer where the time is real: a test that fakes timers but not the time would have to advance it.
      const timer = this.#clock === systemClock ? NEVER : this.#clock.setTimer(0, turned);
      if (timer === NEVER) onLoopTurn(turned);
      this.#pending = { since: now, ended, timer };
    }
    return now - this.#pending.since < HOLD_MS ? undefined : this.#pending.ended;
  }

  [Symbol.dispose](): void {
    this.#pending?.timer[Symbol.dispose]();
    this.#pending = undefined;
  }
}
