// The tests that the pages of promises name exist.
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const pages = ['promises/index.md', 'evidence/seen-elsewhere.md'].map((name) =>
  readFileSync(join(root, 'docs', name), 'utf8'),
);
const [promises = ''] = pages;
const suites = globSync('test/promises/P*.int.test.ts', { cwd: root });
const ENDINGS = ['', '.ts', '.test.ts', '.int.test.ts', '.nightly.test.ts'];

/** Where a path of the page may be: written in full, or from the sources of a package. */
function isThere(path: string): boolean {
  const [first = '', ...rest] = path.split('/');
  const places = [path, join('packages', first, 'src', ...rest)];
  return places.some((location) => ENDINGS.some((ending) => existsSync(join(root, location + ending))));
}

test('every promise has its own paragraph and suite', () => {
  const numbers = Array.from({ length: 14 }, (_, i) => `P${i + 1}`);
  expect([...promises.matchAll(/^## (P\d+) /gm)].map(([, promise]) => promise)).toEqual(numbers);
  for (const promise of numbers)
    expect(suites.filter((path) => path.startsWith(`test/promises/${promise}-`))).toHaveLength(1);
});

test('every page that counts the promises has the right number', () => {
  const counting = ['README.md', ...globSync('docs/{*.md,.vitepress/sidebar.ts}', { cwd: root })];
  const counts = counting.flatMap((path) =>
    [...readFileSync(join(root, path), 'utf8').matchAll(/(\S+) promises[,\]']/gi)].map(([, count]) => count!),
  );
  expect(counts.map((count) => count.replace(/\W/g, ''))).toEqual(['14', '14', '14', '14']);
});

test('every test that the pages name is there', () => {
  const named = [...pages.join().matchAll(/`((?:test|packages|core|tools|tasks|acp|ai-sdk)\/[^`\s…]*)`/g)].map(
    ([, path]) => path!,
  );
  expect(named.length).toBeGreaterThan(80);
  expect(named.filter((path) => !isThere(path))).toEqual([]);
});
