/** How many names are kept. Beyond that, the least recently used one is removed. */
const MAX_REMEMBERED = 10_000;

/** Limits how often each name may do something per second, with a burst after a pause. */
export class Rate {
  readonly #perSecond: number;
  readonly #burst: number;
  readonly #left = new Map<string, { readonly count: number; readonly at: number }>();

  constructor(perSecond: number, burst: number) {
    this.#perSecond = perSecond;
    this.#burst = burst;
  }

  /** Counts one request. Returns 0, or how many milliseconds too early it is. */
  take(name: string, now: number): number {
    const before = this.#left.get(name) ?? { count: this.#burst, at: now };
    const earned = (Math.max(0, now - before.at) / 1_000) * this.#perSecond;
    const count = Math.min(this.#burst, before.count + earned);
    const isEarly = count < 1;
    // Keep the map in order of the last request.
    this.#left.delete(name);
    this.#left.set(name, { count: isEarly ? count : count - 1, at: now });
    if (this.#left.size > MAX_REMEMBERED) this.#left.delete(this.#left.keys().next().value!);
    return isEarly ? ((1 - count) / this.#perSecond) * 1_000 : 0;
  }
}
