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
  core: { budget: 8_100, now: 8_389 },
  'ai-sdk': { budget: 2_300, now: 2_490 },
  tools: { budget: 6_800, now: 8_032 },
  tasks: { budget: 18_900, now: 21_538 },
  bullmq: { budget: 400, now: 575 },
  acp: { budget: 4_000, now: 4_496 },
  server: { budget: 7_400, now: 9_901 },
  console: { budget: 5_900, now: 6_486 },
  check: { budget: 3_500, now: 3_845 },
  whoa: { budget: 6_900, now: 8_072 },
};

/** How far lines may fall below `now` before it must be lowered. */
const SLACK = 100;

const SOURCES = '{bin,src}/**/*.{ts,tsx,js,css,lua,sql}';
/** Nor do the rules that are written by `npm run rules`: they are counted where they come from. */
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

/** Names by entry when they were last cut. */
const NAMES: Readonly<Record<string, number>> = {
  '@whoa/acp': 15,
  '@whoa/ai-sdk': 12,
  '@whoa/ai-sdk/testing': 5,
  '@whoa/bullmq': 5,
  '@whoa/check': 23,
  '@whoa/core': 45,
  '@whoa/core/testing': 10,
  '@whoa/core/approval': 12,
  '@whoa/core/view': 9,
  '@whoa/core/model': 10,
  '@whoa/core/embed': 20,
  '@whoa/core/internal': 34,
  '@whoa/server': 49,
  '@whoa/server/client': 5,
  '@whoa/server/task-client': 11,
  '@whoa/server/telemetry': 7,
  '@whoa/server/webhooks': 6,
  '@whoa/tasks': 76,
  '@whoa/tasks/testing': 10,
  '@whoa/tasks/store': 11,
  '@whoa/tasks/compat': 7,
  '@whoa/tasks/internal': 5,
  '@whoa/tools': 35,
  '@whoa/tools/testing': 6,
  '@whoa/tools/watchdog': 0,
  whoa: 20,
};

/** How many names all entries together may gain. */
const MORE_NAMES = 46;

test('packages export few names', () => {
  const report = readFileSync(join(ROOT, 'api/README.md'), 'utf8');
  const entries = [...report.matchAll(/`([^`]+)` (\d+)/gu)].map(([, entry, count]) => [entry!, Number(count)] as const);
  expect(entries.length).toBeGreaterThan(20);
  const gained = entries.map(([entry, count]) => Math.max(0, count - (NAMES[entry] ?? 0)));
  const sum = gained.reduce((all, one) => all + one, 0);
  expect(sum, 'names that entries gained; remove as many as you add').toBeLessThanOrEqual(MORE_NAMES);
});
