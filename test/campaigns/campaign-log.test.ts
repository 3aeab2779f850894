import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withBounds } from './bounds.ts';
import { type LogEntry, readCampaignLog, toText, withSummary } from './campaign-log.ts';

const read = (page: string): string => readFileSync(join(import.meta.dirname, '../../docs', page), 'utf8');
const EMPTY =
  '# Bounds\n<!-- Written from docs/evidence/campaign-log.jsonl by the campaigns. -->\n<!-- The end of what campaigns write. -->\n';

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

test('a campaign log is read as it was written', () => {
  const entries = [simulated, { ...unseeded, commit: '5fa1a2a00000+', violations: 2 }];
  expect(readCampaignLog(toText(entries))).toEqual(entries);
});

test('an incomplete entry is rejected', () => {
  const { violations: _violations, ...incomplete } = simulated;
  expect(() => readCampaignLog(JSON.stringify(incomplete))).toThrow(SyntaxError);
  expect(() => readCampaignLog(JSON.stringify({ ...simulated, count: 'many' }))).toThrow(SyntaxError);
});

test('the pages show the summary of the campaign log, and the bounds it gives', () => {
  const log = readCampaignLog(read('evidence/campaign-log.jsonl'));
  for (const [page, write] of [
    ['promises/index.md', withBounds],
    ['evidence/campaign-log.md', withSummary],
  ] as const)
    expect(write(read(page), log)).toBe(read(page));
});

test('the summary has one row for each campaign and store, and counts from the last violation', () => {
  const page = withSummary(EMPTY, [simulated, { ...simulated, violations: 2 }, { ...simulated, count: 30 }, unseeded]);
  expect(page).toContain('| simulate | memory | 100,030 | 2 | 30 | runs | 2026-11-16 | `5fa1a2a00000` |');
  expect(page).toContain('| chaos | Redis | 20,000 | 0 | 20,000 | runs | 2026-11-16 | `5fa1a2a00000` |');
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

test('runs from before a campaign judged a promise do not count for it', () => {
  const mixed = { ...simulated, campaign: 'simulate-mixed' };
  const page = describeBounds(mixed, { ...mixed, date: '2026-11-18', seeds: [60_001, 60_100], count: 100 });
  expect(page).toContain('| P13 | ≤ 3 in 50,100 | not judged |');
  expect(page).toContain('| P14 | ≤ 3 in 100 | not run yet |');
});
