// Prints how much of the CPU time between two readings of the first line of /proc/stat the host took away, in percent.
//   node scripts/ci-stolen.ts BEFORE AFTER
const STEAL = 7;
const [before = [], after = []] = process.argv.slice(2).map((line) => line.trim().split(/\s+/u).slice(1).map(Number));
const spent = after.map((ticks, i) => ticks - before[i]!);
// The last two, of guests, are counted in the first two already.
const all = spent.slice(0, STEAL + 1).reduce((sum, ticks) => sum + ticks, 0);
console.log(Math.round((100 * spent[STEAL]!) / Math.max(all, 1)));
