import { expect, test } from 'vitest';
import { plantedBugs } from './planted.ts';
import { simulate, simulateInProcesses } from './simulated.ts';
import { tryPlanted } from './try-planted.ts';

/** Those that few seeds find: all of them are tried by `npm run long -- planted`. */
const QUICK = [
  'blind final write',
  'a cancel that is accepted is not written',
  'the last reason wins',
  'an end keeps its place in the conversation',
  'a concurrency key is never given back',
  'a lane is closed while something is ready in it',
  'a lane is not opened again',
  'no fence',
  'a worker counts its turns from the start again',
  'a reader that comes back is given everything again',
  'a task that is being cancelled is told as ended',
  'an answer answers every question that waits',
  'a no with a reason is a yes',
  'two messages of a chat are answered at once',
  'a stop ends what comes next, too',
  'a call begins in a process that was stopped or slept',
  'a process writes without a look at the format',
];

const GROUNDS = [
  { ground: 'delivery', seeds: 300 },
  { ground: 'wide', seeds: 150 },
  { ground: 'pauses', seeds: 100 },
  { ground: 'upgrade', seeds: 60 },
] as const;

test.for(GROUNDS)('$seeds histories with faults keep every promise: $ground', async ({ ground, seeds }) => {
  const { broken, seeds: played } = await simulate('--ground', ground, '--seeds', `${seeds}`);
  expect({ broken, played }).toEqual({ broken: [], played: seeds });
});

/** Rare ones: answers that reach a worker after it has given its session up, or in the moment in which it does. */
const RARE = [
  ...[142_904, 152_843, 162_499, 162_718, 171_466, 5_871, 129_952].map((seed) => ({ ground: 'delivery', seed })),
  // The answer to a beat is read after the lease, and before the timer that ends it.
  { ground: 'pauses', seed: 422_678 },
  // A worker that waits for one task asks for it just when another should be asked to sweep.
  { ground: 'pauses', seed: 665_797 },
];

test.for(RARE)('history $seed of the ground $ground keeps every promise', async ({ ground, seed }) => {
  const { broken } = await simulate('--ground', ground, '--seeds', '1', '--from', String(seed));
  expect(broken).toEqual([]);
});

test('a message that is due with the one it replaces ends it: history 10218 of the wide ground', async () => {
  const { broken } = await simulate('--ground', 'wide', '--seeds', '1', '--from', '10218');
  expect(broken).toEqual([]);
});

test.for(GROUNDS)('a seed gives the same history each time: $ground', async ({ ground }) => {
  const args = ['--ground', ground, '--seeds', '30'];
  const [one, other] = [await simulate(...args), await simulate(...args)];
  expect(other).toEqual(one);
  const next = await simulate(...args, '--from', '2');
  expect(next.digest).not.toBe(one.digest);
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

test.for(QUICK)('the simulation finds a planted bug: %s', async (name) => {
  const bug = plantedBugs.find((one) => one.name === name)!;
  const { broken } = await tryPlanted(bug, 150);
  expect(broken).toHaveLength(1);
});
