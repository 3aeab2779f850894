// The size of the house: lines of production code by package, and the names that packages export. Tests and testing entries
// do not count. To add more, delete as much.
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from './docs/pages.ts';

interface Ceiling {
  readonly budget: number;
  /** A package above its budget may only shrink: its lines when they were last counted. */
  readonly now?: number;
}

const CEILINGS: Readonly<Record<string, Ceiling>> = {
  core: { budget: 8_800, now: 9_984 },
  'ai-sdk': { budget: 2_400, now: 2_546 },
  tools: { budget: 7_500, now: 8_978 },
  tasks: { budget: 17_500, now: 22_229 },
  bullmq: { budget: 600, now: 705 },
  acp: { budget: 4_300, now: 4_432 },
  server: { budget: 9_400, now: 12_608 },
  console: { budget: 5_900, now: 6_932 },
  check: { budget: 3_600, now: 3_830 },
  whoa: { budget: 7_500, now: 8_558 },
};

/** How far lines may fall below `now` before it must be lowered. */
const SLACK = 100;

const SOURCES = '{bin,src}/**/*.{ts,tsx,js,css,lua,sql}';
/** Nor do generated rules (`npm run rules`): their sources are counted. */
const NOT_PRODUCT = /\.test\.tsx?$|\/testing\/|\/rules\.(lua|sql)$/;

function countLines(name: string): number {
  const cwd = join(ROOT, 'packages', name);
  const files = globSync(SOURCES, { cwd }).filter((file) => !NOT_PRODUCT.test(file));
  return files.reduce((sum, file) => sum + readFileSync(join(cwd, file), 'utf8').split('\n').length - 1, 0);
}

test('every package has a budget', () => {
  expect(readdirSync(join(ROOT, 'packages')).toSorted()).toEqual(Object.keys(CEILINGS).toSorted());
});

test.for(Object.entries(CEILINGS))('%s stays within its lines', ([name, { budget, now }]) => {
  const lines = countLines(name);
  expect(lines, `packages/${name} has ${lines} lines; delete as much as you add`).toBeLessThanOrEqual(now ?? budget);
  const isStale = now !== undefined && (lines <= budget || lines < now - SLACK);
  expect(isStale, `packages/${name} has shrunk to ${lines} lines: lower or remove \`now\``).toBe(false);
});

/** How many names the entries of all packages may export together, and how many some of them may. */
const MAX_NAMES = 352;
const MAX_NAMES_BY_ENTRY: Readonly<Record<string, number>> = { '@whoa/core': 40 };
/** For our own packages: not counted above. */
const MAX_INTERNAL_NAMES = 95;

test('packages export few names', () => {
  const report = readFileSync(join(ROOT, 'api/README.md'), 'utf8');
  const entries = [...report.matchAll(/`([^`]+)` (\d+)/gu)].map(([, entry, count]) => [entry!, Number(count)] as const);
  expect(entries.length).toBeGreaterThan(20);
  const sum = (isInternal: boolean): number =>
    entries.reduce((all, [entry, count]) => all + (entry.endsWith('/internal') === isInternal ? count : 0), 0);
  expect(sum(false), 'names that packages export; remove as many as you add').toBeLessThanOrEqual(MAX_NAMES);
  expect(sum(true), 'names for our own packages').toBeLessThanOrEqual(MAX_INTERNAL_NAMES);
  for (const [entry, max] of Object.entries(MAX_NAMES_BY_ENTRY))
    expect(Object.fromEntries(entries)[entry], entry).toBeLessThanOrEqual(max);
});
