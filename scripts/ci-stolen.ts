// How the CPU time between two readings of the first line of /proc/stat was spent. As a program it prints how much of it the host
// took away, in percent.
//   node scripts/ci-stolen.ts BEFORE AFTER

const IDLE = [3, 4];
const STEAL = 7;
const TICKS_PER_SECOND = 100;

export interface Spent {
  readonly stolenPercent: number;
  /** By every process of the machine. */
  readonly busySeconds: number;
}

export function readSpent(before: string, after: string): Spent {
  const [from = [], to = []] = [before, after].map((line) => line.trim().split(/\s+/u).slice(1).map(Number));
  // The last two, of guests, are counted in the first two already.
  const spent = to.slice(0, STEAL + 1).map((ticks, i) => ticks - (from[i] ?? 0));
  const sum = (some: readonly number[]): number => some.reduce((all, ticks) => all + ticks, 0);
  const busy = sum(spent.filter((_, i) => i !== STEAL && !IDLE.includes(i)));
  return {
    stolenPercent: Math.round((100 * (spent[STEAL] ?? 0)) / Math.max(sum(spent), 1)),
    busySeconds: Math.round(busy / TICKS_PER_SECOND),
  };
}

if (import.meta.main) {
  const [before = '', after = ''] = process.argv.slice(2);
  console.log(readSpent(before, after).stolenPercent);
}
