import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withBounds } from './bounds.ts';
import { type LogEntry, readCampaignLog, toRow } from './campaign-log.ts';

const read = (page: string): string => readFileSync(join(import.meta.dirname, '../../docs', page), 'utf8');
const HEAD = '| Date |\n| --- |\n';
const EMPTY =
  '# Bounds\n<!-- Written from docs/evidence/campaign-log.md by the campaigns. -->\n<!-- The end of what campaigns write. -->\n';

const simulated: LogEntry = {
  date: '2026-11-16',
  commit: '5fa1a2a00000',
  campaign: 'simulate',
  store: 'memory',
  seeds: [1, 50_000],
  count: 50_000,
  unit: 'runs',
  violations: 0,
};
const { seeds: _seeds, ...unseeded } = {
  ...simulated,
  campaign: 'chaos',
  store: 'Redis',
  count: 20_000,
  unit: 'runs',
};

function describeBounds(...log: LogEntry[]): string {
  return withBounds(EMPTY, log);
}

test('a line of the campaign log is read as it was written', () => {
  const entries = [simulated, { ...unseeded, commit: '5fa1a2a00000+', violations: 2 }];
  expect(readCampaignLog(`${HEAD}${entries.map(toRow).join('\n')}\n`)).toEqual(entries);
});

test('a line that is not an entry is rejected', () => {
  expect(() => readCampaignLog(`${HEAD}| yesterday | a lot |`)).toThrow(SyntaxError);
});

test('the campaign log can be read, and the page of promises shows the bounds it gives', () => {
  const page = read('promises/index.md');
  expect(withBounds(page, readCampaignLog(read('evidence/campaign-log.md')))).toBe(page);
});

test('a bound counts simulated runs and chaos runs apart, and each seed once', () => {
  const again = { ...simulated, seeds: [40_001, 60_000] as const, count: 20_000 };
  const page = describeBounds(simulated, again, unseeded, { ...unseeded, store: 'SQLite' });
  expect(page).toContain('| P1 | ≤ 3 in 60,000 | ≤ 3 in 40,000 |');
  expect(page).toContain('| P4 | ≤ 3 in 60,000 | not judged |');
});

test('a violation restarts the count of its campaign and store', () => {
  const page = describeBounds(simulated, { ...unseeded, violations: 1 }, { ...unseeded, store: 'SQLite' });
  expect(page).toContain('| P1 | ≤ 3 in 50,000 | ≤ 3 in 20,000 |');
  expect(describeBounds({ ...simulated, violations: 1 })).toContain('| P1 | not run yet | not run yet |');
});
