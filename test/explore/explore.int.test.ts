import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { forChange } from '../night.ts';
import { plant } from '../plant.ts';
import { plantedBugs } from './planted.ts';
import { explore, exploreInTwo } from './run-explore.ts';

const sources = join(import.meta.dirname, '../../packages/core/src');

test('2,000 schedules of cancel, finish, fail, escalate, dispose and new messages keep every promise', async () => {
  expect(await exploreInTwo(2_000)).toEqual([{ schedules: 1_000 }, { schedules: 1_000 }]);
});

test.each(forChange(plantedBugs, (_, index) => index < 2))(
  'the exploration finds a planted bug: $name',
  async ({ changes, breaks }) => {
    const folder = await mkdtemp(join(tmpdir(), 'whoa-planted-'));
    try {
      await cp(sources, folder, { recursive: true });
      await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
      await plant(changes, folder);
      const { violation, schedules } = await explore('--schedules', '20000', '--core', folder);
      expect(violation).toContain(breaks);
      console.log(`found after ${schedules} schedules`);
    } finally {
      await rm(folder, { recursive: true });
    }
  },
);
