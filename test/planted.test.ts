import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { plantedBugs as inFuzz } from './campaigns/fuzz/planted.ts';
import { plantedBugs as inCore } from './explore/planted.ts';
import { type Change, planted } from './plant.ts';
import { plantedBugs as inTasks } from './simulation/planted.ts';

const packages = join(import.meta.dirname, '../packages');
const bugs = [
  ...inFuzz.map((bug) => ({ ...bug, sources: packages })),
  ...inCore.map((bug) => ({ ...bug, sources: join(packages, 'core/src') })),
  ...inTasks.map((bug) => ({ ...bug, sources: join(packages, 'tasks/src') })),
];

test.for(bugs)('the sources have the place for the planted bug: $name', ({ changes, sources }) => {
  const texts = new Map<string, string>();
  const apply = (change: Change): void => {
    const before = texts.get(change.file) ?? readFileSync(join(sources, change.file), 'utf8');
    texts.set(change.file, planted(before, change));
    expect(texts.get(change.file)).not.toBe(before);
  };
  for (const change of changes) apply(change);
});
