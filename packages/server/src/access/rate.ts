/** How many are remembered; beyond that the one who was quiet for longest is forgotten. */
const MAX_REMEMBERED = 10_000;

/** Lets each name do something so many times a second, and after a pause so many at once. */
export class Rate {
  readonly #perSecond: number;
  readonly #burst: number;
  readonly #left = new Map<string, { readonly count: number; readonly at: number }>();

  constructor(perSecond: number, burst: number) {
    this.#perSecond = perSecond;
    this.#burst = burst;
  }

  /** Counts one. Returns 0, or how many milliseconds too early it is. */
  take(name: string, now: number): number {
    const before = this.#left.get(name) ?? { count: this.#burst, at: now };
    const earned = (Math.max(0, now - before.at) / 1_000) * this.#perSecond;
    const count = Math.min(this.#burst, before.count + earned);
    const isEarly = count < 1;
    // Last in the map is who asked last.
    this.#left.delete(name);
    this.#left.set(name, { count: isEarly ? count : count - 1, at: now });
    if (this.#left.size > MAX_REMEMBERED) this.#left.delete(this.#left.keys().next().value!);
    return isEarly ? ((1 - count) / this.#perSecond) * 1_000 : 0;
  }
}
