import type { Clock } from '@whoa/core/embed';

/** When a request was sent. */
export interface Sent {
  readonly at: number;
  /** How far the wall clock was ahead of ours: what the machine sleeps through is missing from ours. */
  readonly wallAheadMs: number;
}

/** A sleep of the machine that is longer than this share of a lease counts. */
const SLEEP_SHARE = 1 / 3;

/** Counts a lease from when it was last asked for, not from when the store answered: the answer may have taken long. */
export class LeaseClock {
  readonly #clock: Clock;
  readonly #leaseMs: number;
  #kept: Sent = { at: 0, wallAheadMs: 0 };

  constructor(clock: Clock, leaseMs: number) {
    this.#clock = clock;
    this.#leaseMs = leaseMs;
  }

  now(): Sent {
    const at = this.#clock.now();
    return { at, wallAheadMs: (this.#clock.wallNow?.() ?? at) - at };
  }

  keepFrom(asked: Sent): void {
    this.#kept = asked;
  }

  get ageMs(): number {
    return this.#clock.now() - this.#kept.at;
  }

  get hasSlept(): boolean {
    return this.now().wallAheadMs - this.#kept.wallAheadMs > this.#leaseMs * SLEEP_SHARE;
  }
}
