import { expect, test } from 'vitest';
import { fuzzSockets } from '../../../../test/server/socket-fuzz.ts';

test('20,000 broken and misplaced frames: every answer is in order, and nothing fails unseen', async () => {
  const { problems, frames, byType } = await fuzzSockets({ frames: 20_000, seed: 7, hangMs: 20_000 });
  expect(problems).toEqual([]);
  expect(frames).toBe(20_000);
  for (const type of ['start', 'chunk', 'end', 'error', 'no-active', 'receipt'])
    expect(byType[type]).toBeGreaterThan(50);
});
