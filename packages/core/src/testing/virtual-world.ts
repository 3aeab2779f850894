import { type Clock, isNever, NEVER, type World } from '../stop/clock.ts';
import { waitForQuietLoop } from '../stop/event-loop.ts';

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
}

/** A clock that stands still until it is advanced. */
export class VirtualClock implements Clock {
  #now: number;
  #order = 0;
  readonly #timers = new Set<Timer>();

  constructor(startsAt = 1_700_000_000_000) {
    this.#now = startsAt;
  }

  /** Returns the virtual time. */
  now(): number {
    return this.#now;
  }

  /** Calls back when the virtual time has advanced far enough. */
  setTimer(ms: number, callback: () => void): Disposable {
    if (isNever(ms)) return NEVER;
    const timer = { at: this.#now + Math.max(0, ms), order: this.#order++, callback };
    this.#timers.add(timer);
    return { [Symbol.dispose]: () => this.#timers.delete(timer) };
  }

  /** How many timers are set. 0 when all are cleared. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Advances by `ms`. Fires due timers in order, and lets everything react before the next. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await flushMicrotasks();
    for (let timer = this.#next(end); timer !== undefined; timer = this.#next(end)) {
      this.#fire(timer);
      await flushMicrotasks();
    }
    this.#now = end;
  }

  /** Fires the next timer, however far ahead. Returns whether there was one. */
  fireNext(): boolean {
    const timer = this.#next(Infinity);
    if (timer !== undefined) this.#fire(timer);
    return timer !== undefined;
  }

  #fire(timer: Timer): void {
    this.#timers.delete(timer);
    this.#now = timer.at;
    timer.callback();
  }

  #next(until: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.at > until) continue;
      if (first === undefined || timer.at < first.at || (timer.at === first.at && timer.order < first.order))
        first = timer;
    }
    return first;
  }
}

/**
 * Waits until every promise that can settle without time passing has settled, also those that wait for the event loop to
 * turn.
 *
 * @returns A promise that resolves then.
 */
export function flushMicrotasks(): Promise<void> {
  return waitForQuietLoop();
}

/**
 * Creates a world where the test advances time, ids count up and randomness is repeatable.
 *
 * @returns The world to pass to agents, runtimes and stores.
 */
export function createVirtualWorld(
  options: { seed?: number | undefined } = {},
): World & { readonly clock: VirtualClock } {
  let ids = 0;
  let seed = options.seed ?? 1;
  return {
    clock: new VirtualClock(),
    createId: () => `id-${++ids}`,
    random() {
      // Mulberry32: small, fast, and good enough for repeatable tests.
      seed = (seed + 0x6d2b79f5) | 0;
      let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
    },
  };
}
