import { beforeAll, expect, test } from 'vitest';
import { forChange } from '../night.ts';
import { plantedBugs } from './planted.ts';
import type { Simulated } from './simulated.ts';
import { tryPlanted } from './try-planted.ts';

/** Bugs that few seeds find. `npm run long -- planted` tries all of them. */
const ALL_QUICK = [
  'blind final write',
  'a cancel that is accepted is not written',
  'the last reason wins',
  'an end keeps its place in the conversation',
  'a ready queue is closed while something is ready in it',
  'a ready queue is not opened again',
  'no fence',
  'a worker counts its turns from the start again',
  'a returning reader gets everything again',
  'a task that is being cancelled is reported as ended',
  'an answer does not wake a parked task',
  'another tenant may answer',
  'a call that is answered is asked again under another id',
  'a client call is not started if its task is cancelled in the store',
  'a late answer is not given the reason',
  'two messages of a chat are answered at the same time',
  'a stop also ends later messages',
  'a call begins in a process that was stopped or slept',
  'a process writes without checking the format',
  'the neighbours of a crash are charged',
  'a session takes several suspects',
  'a charge survives a late release',
  'a release is sent once',
  'a task fails though its provider comes back',
  'a task waits for ever for its provider',
  'a stop waits for the provider',
  'a model sees that it was away',
  'a worker takes only when it is notified',
];

/** For every change a few: they show that the simulation looks at what it should. */
const QUICK = forChange(ALL_QUICK, (_, index) => index % 5 === 0);

/** Simulated last in the same process, to show that what the bugs before left behind does not count as a finding. */
const UNCHANGED = { name: 'unchanged', profile: 'delivery', changes: [] } as const;

let tried: Simulated[];
beforeAll(async () => {
  tried = await tryPlanted([...QUICK.map((name) => plantedBugs.find((bug) => bug.name === name)!), UNCHANGED], 150);
}, 300_000);

test.for(QUICK.map((name, i) => ({ name, i })))('the simulation finds a planted bug: $name', ({ i }) =>
  expect(tried[i]!.broken).toHaveLength(1),
);

test('the simulation finds nothing in unchanged sources', () =>
  expect(tried.at(-1)).toMatchObject({ broken: [], seeds: 150 }));
