// Which files prove a rule: two on every change, the rest at night. `proofs.json` lists them.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import proofs from './proofs.json' with { type: 'json' };

const root = join(import.meta.dirname, '..');
const ASKS_THE_NIGHT = /\/(night|surfaces\/\w+)\.ts'/;
const find = (patterns: readonly string[]): string[] =>
  globSync([...patterns], { cwd: root, exclude: ['**/node_modules/**'] });
const isAtNight = (file: string): boolean =>
  file.endsWith('.nightly.test.ts') ||
  (file.endsWith('.int.test.ts') && ASKS_THE_NIGHT.test(readFileSync(join(root, file), 'utf8')));

test('every rule has two proofs on every change, which exist', () => {
  for (const [rule, { day }] of Object.entries(proofs)) {
    expect(day, rule).toHaveLength(2);
    for (const pattern of day) expect(find([pattern]), pattern).not.toEqual([]);
  }
});

test('every test that runs at night belongs to one rule', () => {
  const atNight = find(['{packages,test}/**/*.{nightly,int}.test.ts']).filter(isAtNight);
  const listed = Object.values(proofs).flatMap(({ night }) => [...new Set(find(night).filter(isAtNight))]);
  expect(listed.toSorted()).toEqual(atNight.toSorted());
});
