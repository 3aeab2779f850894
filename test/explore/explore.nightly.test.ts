import { expect, test } from 'vitest';
import { exploreInTwo } from './run-explore.ts';

/** Virtual time: a busy machine only takes longer. */
const BUSY_MS = 1_200_000;

test('40,000 schedules of cancel, finish, fail, escalate, dispose and new messages keep every promise', {
  timeout: BUSY_MS,
}, async () => {
  expect(await exploreInTwo(40_000)).toEqual([{ schedules: 20_000 }, { schedules: 20_000 }]);
});
