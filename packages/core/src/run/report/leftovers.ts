import type { Clock } from '../../stop/clock.ts';
import { waitForLoop } from '../../stop/event-loop.ts';
import type { CancellationToken } from '../../stop/token/token.ts';
import { waitUntilLevel } from '../../stop/wait.ts';

/** How long work that was asked to end may take before it is abandoned. */
const LEFT_MS = 1_000;

/** Work of a run that was asked to end and has not yet. */
export interface Leftover {
  readonly name: string;
  /** Settles when it ends. */
  readonly ended: Promise<unknown>;
  /** When the wait for it is over. */
  readonly until: number;
}

/** Tracks work that was asked to end. The run waits briefly for it, and names it if it still runs at the end. */
export class Leftovers {
  readonly #clock: Clock;
  readonly #running = new Set<Leftover>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The work that is still running. */
  get running(): readonly Leftover[] {
    return [...this.#running];
  }

  readonly add = (name: string, ended: PromiseLike<unknown>, waitMs: number = LEFT_MS): void => {
    const left = { name, ended: Promise.resolve(ended), until: this.#clock.now() + waitMs };
    const forget = (): unknown => this.#running.delete(left);
    this.#running.add(left);
    left.ended.then(forget, forget);
  };

  /** Resolves when no work is left or its time is over. At `kill` it is over for all: only what ends in this loop has ended. */
  async settle(token: CancellationToken): Promise<void> {
    for (const left of this.#running) {
      const leftMs = left.until - this.#clock.now();
      if (leftMs <= 0 || token.level === 'kill') continue;
      const limit = token.child('leftovers');
      limit.cancelAfter(leftMs, { kind: 'deadline' }, { mode: 'kill' });
      await waitUntilLevel(left.ended, limit, 'kill');
      limit[Symbol.dispose]();
    }
    if (this.#running.size > 0 && token.level === 'kill') await waitForLoop();
  }
}
