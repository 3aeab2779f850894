import { expect, test } from 'vitest';
import { tryMatrix } from './campaigns/approval-matrix.ts';
import { createWorkspace } from './workspace.ts';

test('no call runs without the yes it needs: every tool, every way to set approval, agents three deep', async () => {
  using workspace = createWorkspace();
  const { cells, problems } = await tryMatrix({ workspace, isWhole: false });
  expect(problems).toEqual([]);
  expect(cells).toBeGreaterThan(1_000);
});
