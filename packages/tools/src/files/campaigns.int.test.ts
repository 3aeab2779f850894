import { expect, test } from 'vitest';
import { cancelWrites } from '../../../../test/campaigns/cancelled-writes.ts';
import { swapPaths } from '../../../../test/campaigns/swapped-paths.ts';
import { isNight } from '../../../../test/night.ts';
import { expectNothingLeft } from '../../../../test/tools/nothing-left.ts';
import { createWorkspace } from '../../../../test/workspace.ts';

expectNothingLeft();

test('a 64 MB write cancelled at any moment leaves the old file or the new one, and nothing else', async () => {
  using workspace = createWorkspace();
  const options = { folder: workspace.path, rounds: isNight ? 12 : 4, bytes: 64_000_000, random: Math.random };
  const result = await cancelWrites(options);
  console.log(result);
  expect(result.faults).toEqual([]);
});

test('links swapped in while tools are at work lead them nowhere', async () => {
  using workspace = createWorkspace();
  const result = await swapPaths(workspace.path, 3_000);
  console.log(result);
  expect(result.escapes).toBe(0);
  expect(result.swaps).toBeGreaterThan(1_000);
  expect(result.ends['read finished']).toBeGreaterThan(100);
  expect(result.ends['read failed']).toBeGreaterThan(100);
});
