import type { Clock } from '@whoa/core/embed';

/** When a request was sent. */
export interface Sent {
  readonly at: number;
  /** How far the wall clock was ahead of ours. Our clock stands still while the machine sleeps. */
  readonly wallAheadMs: number;
}

/** A sleep of the machine counts if it is longer than this share of a lease. */
const SLEEP_SHARE = 1 / 3;

/** Measures a lease from when it was requested, not from the response: the response may have taken long. */
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
