import { expect, test } from 'vitest';
import { playApprovedTurns } from '../campaigns/approved-turns.ts';

test('in 90 conversations nothing ran without a yes or twice, what ran was told, and every request was accepted', async () => {
  const { problems, ...report } = await playApprovedTurns({ conversations: 90, seed: 20_271 });
  expect(problems).toEqual([]);
  expect(report.conversations).toBe(90);
  for (const [name, count] of Object.entries(report)) expect(count, name).toBeGreaterThan(50);
});
