import { expect, test } from 'vitest';
import { fuzz } from '../../../test/acp/fuzz.ts';

test('5,000 broken and misplaced frames: no crash, no hang, valid messages only', async () => {
  const report = await fuzz({ frames: 5_000, seed: 20_261, framesPerProcess: 1_000, hangMs: 20_000 });
  expect(report.problems).toEqual([]);
  expect(report).toMatchObject({ frames: 5_000, processes: 5 });
});
