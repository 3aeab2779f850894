import { beforeAll, expect, test } from 'vitest';
import { isNight } from '../night.ts';
import { type Simulated, simulate, simulateInProcesses, simulateMany } from './simulated.ts';

/** A change simulates a third of them. */
const seedsOf = (count: number): number => (isNight ? count : Math.ceil(count / 3));

const PROFILES = (
  [
    { profile: 'delivery', seeds: 150 },
    { profile: 'mixed', seeds: 75 },
    { profile: 'nested', seeds: 75 },
    { profile: 'suspends', seeds: 50 },
    { profile: 'upgrade', seeds: 30 },
    { profile: 'poison', seeds: 75 },
    { profile: 'provider', seeds: 75 },
  ] as const
).map(({ profile, seeds }) => ({ profile, seeds: seedsOf(seeds) }));

/** Rare ones: a response that reaches a worker after, or exactly when, it gives its session up. */
const RARE = [
  ...[142_904, 152_843, 162_499, 162_718, 171_466, 5_871, 129_952].map((seed) => ({
    profile: 'delivery' as const,
    seed,
  })),
  // The result of a heartbeat is read after the lease has expired, and before the timer that ends it.
  { profile: 'suspends', seed: 422_678 },
  // A worker that waits for one task requests it just when another should be asked to sweep.
  { profile: 'suspends', seed: 665_797 },
  // A message is due at the same time as the one it replaces, and ends it.
  { profile: 'mixed', seed: 10_218 },
  // The response to a heartbeat arrives after that to a take that was sent later.
  { profile: 'mixed', seed: 80_078_394 },
  // After the yes a message comes first, and keeps the call from its page.
  { profile: 'mixed', seed: 62 },
  // A user answers `never` after the yes to a sub-agent's call, which then continues on another worker.
  ...[109, 222].map((seed) => ({ profile: 'nested' as const, seed })),
  // At these the simulation finds planted bugs that the seeds of a change do not find.
  ...[136, 142, 203, 215, 234, 628, 929].map((seed) => ({ profile: 'delivery' as const, seed })),
  ...[21, 587].map((seed) => ({ profile: 'suspends' as const, seed })),
  { profile: 'mixed', seed: 26 },
  { profile: 'poison', seed: 57 },
  { profile: 'provider', seed: 48 },
] as const;

/** `npm run long -- buses` simulates many. */
const LOSSY = [
  { profile: 'delivery', bus: 'drops', seeds: seedsOf(30) },
  { profile: 'mixed', bus: 'disorders', seeds: seedsOf(30) },
] as const;

/** How many seeds of a profile are simulated twice, and again from the second seed. */
const REPEATED = isNight ? 10 : 3;

let many: Simulated[];
let rare: Simulated[];
let lossy: Simulated[];
let repeated: Simulated[];
// All in one process, because most of them take less time than starting one.
beforeAll(async () => {
  const results = await simulateMany([
    ...PROFILES.map((job) => ({ ...job, from: 1 })),
    ...RARE.map(({ profile, seed }) => ({ profile, from: seed, seeds: 1 })),
    ...LOSSY.map((job) => ({ ...job, from: 1 })),
    ...PROFILES.flatMap(({ profile }) => [1, 1, 2].map((from) => ({ profile, from, seeds: REPEATED }))),
  ]);
  many = results.splice(0, PROFILES.length);
  rare = results.splice(0, RARE.length);
  lossy = results.splice(0, LOSSY.length);
  repeated = results;
}, 300_000);

test.for(PROFILES.map((one, i) => ({ ...one, i })))(
  '$seeds simulated runs keep every promise under faults: $profile',
  ({ seeds, i }) => expect(many[i]).toMatchObject({ broken: [], seeds }),
);

test.for(LOSSY.map((one, i) => ({ ...one, i })))(
  '$seeds simulated runs keep every promise with a bus that $bus hints: $profile',
  ({ seeds, i }) => expect(lossy[i]).toMatchObject({ broken: [], seeds }),
);

test.for(RARE.map((one, i) => ({ ...one, i })))('seed $seed of the profile $profile keeps every promise', ({ i }) =>
  expect(rare[i]).toMatchObject({ broken: [], seeds: 1 }),
);

test.for(PROFILES.map((one, i) => ({ ...one, i })))(
  'a seed gives the same simulated run each time: $profile',
  ({ i }) => {
    const [one, other, next] = repeated.slice(3 * i);
    expect(one!.seeds).toBe(REPEATED);
    expect(other).toEqual(one);
    expect(next!.digest).not.toBe(one!.digest);
  },
);

test('several processes simulate every seed once and return one summary', async () => {
  const range = { from: 5, seeds: 20 };
  const [one, other] = await Promise.all([
    simulate('--from', '5', '--seeds', '20', '--processes', '2'),
    simulateInProcesses(range, { processes: 1, args: [] }),
  ]);
  expect(one).toEqual(other);
  expect(one.seeds).toBe(20);
});
