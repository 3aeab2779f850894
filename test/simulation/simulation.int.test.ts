import { beforeAll, expect, test } from 'vitest';
import { type Simulated, simulate, simulateInProcesses, simulateMany } from './simulated.ts';

const GROUNDS = [
  { ground: 'delivery', seeds: 150 },
  { ground: 'wide', seeds: 75 },
  { ground: 'pauses', seeds: 50 },
  { ground: 'upgrade', seeds: 30 },
  { ground: 'poison', seeds: 75 },
] as const;

/** Rare ones: answers that reach a worker after it has given its session up, or in the moment in which it does. */
const RARE = [
  ...[142_904, 152_843, 162_499, 162_718, 171_466, 5_871, 129_952].map((seed) => ({
    ground: 'delivery' as const,
    seed,
  })),
  // The answer to a beat is read after the lease, and before the timer that ends it.
  { ground: 'pauses', seed: 422_678 },
  // A worker that waits for one task asks for it just when another should be asked to sweep.
  { ground: 'pauses', seed: 665_797 },
  // A message is due together with the one it replaces, and ends it.
  { ground: 'wide', seed: 10_218 },
] as const;

/** How many seeds of a ground are played twice, and once more from the second seed on. */
const REPEATED = 10;

let many: Simulated[];
let rare: Simulated[];
let repeated: Simulated[];
// All in one process, because most of these take less time than starting one.
beforeAll(async () => {
  const results = await simulateMany([
    ...GROUNDS.map((job) => ({ ...job, from: 1 })),
    ...RARE.map(({ ground, seed }) => ({ ground, from: seed, seeds: 1 })),
    ...GROUNDS.flatMap(({ ground }) => [1, 1, 2].map((from) => ({ ground, from, seeds: REPEATED }))),
  ]);
  many = results.splice(0, GROUNDS.length);
  rare = results.splice(0, RARE.length);
  repeated = results;
}, 300_000);

test.for(GROUNDS.map((one, i) => ({ ...one, i })))(
  '$seeds histories with faults keep every promise: $ground',
  ({ seeds, i }) => expect(many[i]).toMatchObject({ broken: [], seeds }),
);

test.for(RARE.map((one, i) => ({ ...one, i })))('history $seed of the ground $ground keeps every promise', ({ i }) =>
  expect(rare[i]).toMatchObject({ broken: [], seeds: 1 }),
);

test.for(GROUNDS.map((one, i) => ({ ...one, i })))('a seed gives the same history each time: $ground', ({ i }) => {
  const [one, other, next] = repeated.slice(3 * i);
  expect(one!.seeds).toBe(REPEATED);
  expect(other).toEqual(one);
  expect(next!.digest).not.toBe(one!.digest);
});

test('several processes play every seed once, and give one summary', async () => {
  const range = { from: 5, seeds: 20 };
  const [one, other] = await Promise.all([
    simulate('--from', '5', '--seeds', '20', '--processes', '2'),
    simulateInProcesses(range, { processes: 1, args: [] }),
  ]);
  expect(one).toEqual(other);
  expect(one.seeds).toBe(20);
});
