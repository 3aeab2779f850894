// docs/evidence/peers.md shows the saved results, and these are complete.
import { expect, test } from 'vitest';
import { summarise } from '../../peers/core/repeat.ts';
import { manifest } from '../../peers/run/install.ts';
import { libraries, libraryKeys } from '../../peers/run/libraries.ts';
import { renderPage } from '../../peers/run/page.ts';
import type { Results } from '../../peers/run/results.ts';
import { scenarios } from '../../peers/scenarios/all.ts';
import { read } from '../docs/pages.ts';

const results = JSON.parse(read('peers/results.json')) as Results;

test('every library was seen in every scenario', () => {
  expect(Object.keys(results.observations)).toEqual(scenarios.map(({ id }) => id));
  for (const [id, seen] of Object.entries(results.observations)) expect(Object.keys(seen), id).toEqual(libraryKeys);
});

test('the versions on the page are those that are installed', () => {
  expect(results.versions).toEqual({ ...manifest.dependencies, ...manifest.packed });
  for (const { packages } of Object.values(libraries))
    for (const name of packages) expect(results.versions).toHaveProperty([name]);
});

test('the page is made from the saved results', () => {
  expect(read('docs/evidence/peers.md')).toBe(renderPage(results));
});

test('rows in which another library is better than ours are on the page', () => {
  const [, better = ''] = read('docs/evidence/peers.md').split('## Where another library is better');
  expect(better.split('\n## ')[0]!.match(/^- /gm)!.length).toBeGreaterThanOrEqual(3);
});

test('scenarios have different names, and a sentence and a rule', () => {
  expect(new Set(scenarios.map(({ id }) => id)).size).toBe(scenarios.length);
  expect(scenarios.length).toBeGreaterThanOrEqual(30);
  for (const { expects, rule } of scenarios) for (const text of [expects, rule]) expect(text).toMatch(/^[A-Z].*\.$/);
});

test('a result that differs between repetitions is "sometimes", with the counts', () => {
  const verdict = (result: 'yes' | 'no') => ({ result, seen: `it was ${result}` });
  expect(summarise([verdict('yes'), verdict('yes')])).toEqual({ result: 'yes', seen: 'it was yes' });
  expect(summarise([verdict('yes'), verdict('no'), verdict('yes')])).toEqual({
    result: 'sometimes',
    seen: '2 of 3 yes, 1 of 3 no; it was no',
  });
});
