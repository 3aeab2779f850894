import type { Clock } from '@whoa/core/embed';

/** When a request was sent. */
export interface Sent {
  readonly at: number;
  /** How far the wall clock was ahead of ours. Our clock stands still while the machine sleeps. */
  readonly wallAheadMs: number;
}

/** What is due at which time of a lease. */
export interface LeaseTimes {
  readonly onBeat: () => void;
  readonly onFence: () => void;
  readonly onOver: () => void;
}

/** Shares of a lease: when a beat is due, and when work is stopped without one. */
const BEAT = 1 / 3;
const FENCE = 2 / 3;
/** A sleep of the machine counts if it is longer than this share of a lease. */
const SLEEP_SHARE = 1 / 3;

/** Measures a lease from when it was requested, not from the response: the response may have taken long. */
export class LeaseClock {
  readonly #clock: Clock;
  readonly #leaseMs: number;
  #kept: Sent = { at: 0, wallAheadMs: 0 };
  #timers: readonly Disposable[] = [];

  constructor(clock: Clock, leaseMs: number) {
    this.#clock = clock;
    this.#leaseMs = leaseMs;
  }

  now(): Sent {
    const at = this.#clock.now();
    return { at, wallAheadMs: (this.#clock.wallNow?.() ?? at) - at };
  }

  /** Extends the lease. The response to an earlier request may come after that to a later one. */
  keepFrom(asked: Sent): void {
    if (asked.at >= this.#kept.at) this.#kept = asked;
  }

  get isBeatDue(): boolean {
    return this.#ageMs >= this.#leaseMs * BEAT;
  }

  /** Work must stop now, so that it has stopped when the lease is over. */
  get isFenced(): boolean {
    return this.#ageMs >= this.#leaseMs * FENCE;
  }

  get isOver(): boolean {
    return this.#ageMs >= this.#leaseMs;
  }

  get hasSlept(): boolean {
    return this.now().wallAheadMs - this.#kept.wallAheadMs > this.#leaseMs * SLEEP_SHARE;
  }

  get isSet(): boolean {
    return this.#timers.length > 0;
  }

  /** Sets the timers of this lease, instead of those that are set. `beatInMs`: a beat is due then, whatever its age. */
  set({ onBeat, onFence, onOver }: LeaseTimes, beatInMs?: number): void {
    this.clear();
    const at = (share: number): number => Math.max(0, this.#leaseMs * share - this.#ageMs);
    this.#timers = [
      this.#clock.setTimer(beatInMs ?? at(BEAT), onBeat),
      this.#clock.setTimer(at(FENCE), onFence),
      // Needed if the store never responds again: otherwise the last writes would wait forever.
      this.#clock.setTimer(at(1), onOver),
    ];
  }

  clear(): void {
    for (const timer of this.#timers) timer[Symbol.dispose]();
    this.#timers = [];
  }

  get #ageMs(): number {
    return this.#clock.now() - this.#kept.at;
  }
}
