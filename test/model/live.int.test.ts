import { expect, test } from 'vitest';
import { isNight } from '../night.ts';
import { checkLive } from './check.ts';
import { liveBugs, smallLive } from './live-configurations.ts';
import { liveMutations } from './live-mutations.ts';

test.for(smallLive)('every reachable state of live text is right: $name', async ({ switches }) => {
  expect(await checkLive(switches)).toEqual({ isWhole: true, states: expect.any(Number) as number });
});

test.runIf(isNight).for(liveBugs.filter(({ name }) => name === 'READ_EACH_GAP'))(
  'the model of live text rejects $name',
  async ({ switches }) => {
    const { violation } = await checkLive(switches);
    expect(violation).toBeDefined();
  },
);

test('each bug of the model is a mutation of the reader, the worker or the ledger, or it is said why not', () => {
  expect(Object.keys(liveMutations).toSorted()).toEqual(liveBugs.map(({ name }) => name).toSorted());
});
