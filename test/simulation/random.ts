/** Random numbers that a seed repeats. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** A whole number below a limit. */
  below(limit: number): number;
  /** True once in `times` calls, on average. */
  oneIn(times: number): boolean;
  pick<T>(from: readonly T[]): T;
}

/** Mulberry32: small, fast, and good enough for repeatable runs. */
export function createRandom(seed: number): Random {
  let state = Math.imul(seed + 1, 0x9e3779b1) | 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return { next, below, oneIn: (times) => below(times) === 0, pick: (from) => from[below(from.length)]! };
}
