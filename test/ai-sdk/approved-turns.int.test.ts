import { expect, test } from 'vitest';
import { runApprovedTurns } from '../campaigns/approved-turns.ts';

test('in 90 conversations nothing ran without a yes or twice, what ran was reported, and every request was accepted', async () => {
  const { problems, ...report } = await runApprovedTurns({ conversations: 90, seed: 20_271 });
  expect(problems).toEqual([]);
  expect(report.conversations).toBe(90);
  for (const [name, count] of Object.entries(report)) expect(count, name).toBeGreaterThan(50);
});
