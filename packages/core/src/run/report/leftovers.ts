import type { Clock } from '../../stop/clock.ts';

/** How long work that was asked to end may take before it is abandoned. */
const LEFT_MS = 1_000;

/** Work of a run that was asked to end and has not yet. */
export interface Left {
  readonly name: string;
  /** Settles when it ends. */
  readonly ended: Promise<unknown>;
  /** When the wait for it is over. */
  readonly until: number;
}

/**
 * Tracks the work that a run has asked to end. The run waits briefly for it, and names it if it still runs when the run
 * settles.
 */
export class Leftovers {
  readonly #clock: Clock;
  readonly #running = new Set<Left>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The work that is still running. */
  get running(): readonly Left[] {
    return [...this.#running];
  }

  readonly add = (name: string, ended: PromiseLike<unknown>, waitMs: number = LEFT_MS): void => {
    const left = { name, ended: Promise.resolve(ended), until: this.#clock.now() + waitMs };
    const forget = (): unknown => this.#running.delete(left);
    this.#running.add(left);
    left.ended.then(forget, forget);
  };

  /**
   * Resolves when no work is left, or all of it has had its time. Returns `undefined` if there is nothing to wait for.
   */
  settle(): Promise<void> | undefined {
    return this.#running.size === 0 ? undefined : this.#settle();
  }

  async #settle(): Promise<void> {
    for (const left of this.#running) {
      const leftMs = left.until - this.#clock.now();
      if (leftMs <= 0) continue;
      const elapsed = Promise.withResolvers<void>();
      const timer = this.#clock.setTimer(leftMs, elapsed.resolve);
      await Promise.race([left.ended, elapsed.promise]).catch(() => {});
      timer[Symbol.dispose]();
    }
  }
}
