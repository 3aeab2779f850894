import { expect, test } from 'vitest';
import { createGlobFilter } from './glob-filter.ts';

test.each<[string, string[], string[]]>([
  ['src/*.ts', ['src/a.ts'], ['src/b/a.ts', 'a.ts', 'lib/src/a.ts', 'src/a.tsx']],
  ['/src/*.ts', ['src/a.ts'], ['lib/src/a.ts']],
  ['src/**/*.ts', ['src/a.ts', 'src/b/c/a.ts'], ['a.ts']],
  ['**/test/*.ts', ['test/a.ts', 'x/y/test/a.ts'], ['test/x/a.ts']],
  ['src/**', ['src/a', 'src/b/c'], ['src', 'lib/src/a']],
  ['src/', ['src/a', 'src/b/c'], ['src']],
  ['{src,lib}/?.[jt]s', ['src/a.ts', 'lib/b.js'], ['src/ab.ts', 'src/a.cs']],
  ['a/[!x]y', ['a/zy'], ['a/xy', 'a//y']],
  ['a/x{1,2{a,b}}', ['a/x1', 'a/x2a'], ['a/x2', 'a/x{1']],
  ['a/b+(c).d', ['a/b+(c).d'], ['a/bc.d', 'a/b+(c)xd']],
  ['a/\\*', ['a/*'], ['a/b']],
  ['a/,}', ['a/,}'], ['a/']],
  ['a/{b', ['a/b'], ['a/{b']],
])('%s accepts paths as .gitignore would', (glob, accepted, refused) => {
  const filter = createGlobFilter(glob);
  for (const path of accepted) expect(filter.accepts(path), path).toBe(true);
  for (const path of refused) expect(filter.accepts(path), path).toBe(false);
});

test('a search is narrowed by the name where a glob tells it, and only left out by a glob that leaves out', () => {
  expect(createGlobFilter('*.ts').args).toEqual(['--type-add=whoa:*.ts', '--type=whoa']);
  expect(createGlobFilter('src/**/*.ts').args).toEqual(['--type-add=whoa:*.ts', '--type=whoa']);
  expect(createGlobFilter('!*.ts').args).toEqual(['--glob=!*.ts']);
  for (const glob of ['src/**', '{a/b,c/d}', 'include:all', 'src/']) expect(createGlobFilter(glob).args).toEqual([]);
});
