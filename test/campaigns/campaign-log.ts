// The log of campaigns that are too long for CI: docs/evidence/campaign-log.jsonl, one line for each. The page next to it
// sums them up.
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { countSinceViolation, withBounds } from './bounds.ts';
import { replaceWritten } from './written.ts';

/** One campaign. */
export interface LogEntry {
  /** Without a time: 2026-11-16. */
  readonly date: string;
  /** The tested commit. It ends with `+` if files have changed since. */
  readonly commit: string;
  readonly campaign: string;
  readonly store: string;
  /** The first and the last, where there are seeds. */
  readonly seeds?: readonly [from: number, to: number];
  readonly count: number;
  /** The unit of the count: runs, bugs. */
  readonly unit: string;
  readonly violations: number;
}

const root = join(import.meta.dirname, '../..');
const LOG = 'docs/evidence/campaign-log.jsonl';
const PAGE = 'docs/evidence/campaign-log.md';
const PROMISES = 'docs/promises/index.md';

/** Appends a campaign's result, and updates the summary of the log and the bounds of the promises. */
export async function addToCampaignLog(entry: Omit<LogEntry, 'date' | 'commit'>): Promise<void> {
  const log = readCampaignLog(await readFile(join(root, LOG), 'utf8'));
  log.push({ date: new Date().toISOString().slice(0, 10), commit: commitNow(), ...entry });
  await writeFile(join(root, LOG), toText(log));
  await rewrite(PAGE, (page) => withSummary(page, log));
  await rewrite(PROMISES, (page) => withBounds(page, log));
}

async function rewrite(page: string, write: (text: string) => string): Promise<void> {
  const file = join(root, page);
  await writeFile(file, write(await readFile(file, 'utf8')));
}

/** Returns the entries of a campaign log. Throws for one that lacks something. */
export function readCampaignLog(text: string): LogEntry[] {
  return text.split('\n').flatMap((line) => {
    if (line === '') return [];
    const entry = JSON.parse(line) as LogEntry;
    const { date, commit, campaign, store, seeds, count, unit, violations } = entry;
    const areTexts = [date, commit, campaign, store, unit].every((value) => typeof value === 'string');
    const areNumbers = [count, violations, ...(seeds ?? [])].every(Number.isSafeInteger);
    if (!areTexts || !areNumbers) throw new SyntaxError(`not an entry of a campaign log: ${line}`);
    return entry;
  });
}

export function toText(log: readonly LogEntry[]): string {
  return log.map((entry) => `${JSON.stringify(entry)}\n`).join('');
}

/** Returns the page of the log with one row for each campaign and store. */
export function withSummary(page: string, log: readonly LogEntry[]): string {
  const groups = Map.groupBy(log, ({ campaign, store }) => `${campaign} | ${store}`);
  const rows = Array.from(groups, ([name, entries]) => {
    const { date, commit, unit } = entries.at(-1)!;
    const cells = [sum(entries, 'count'), sum(entries, 'violations'), countSinceViolation(entries)];
    return `| ${name} | ${cells.map((count) => count.toLocaleString('en')).join(' | ')} | ${unit} | ${date} | \`${commit}\` |`;
  });
  const head = '| Campaign | Store | In all | Violations | Since the last violation | Unit | Last on | Commit |';
  return replaceWritten(page, [head, `|${' --- |'.repeat(8)}`, ...rows.toSorted()].join('\n'));
}

function sum(entries: readonly LogEntry[], field: 'count' | 'violations'): number {
  return entries.reduce((total, entry) => total + entry[field], 0);
}

/** The checked-out commit, with `+` if any file other than those that campaigns write differs from it. */
function commitNow(): string {
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  const changed = git('status', '--porcelain', '--', '.', ...[LOG, PAGE, PROMISES].map((path) => `:!${path}`));
  return `${git('rev-parse', '--short=12', 'HEAD')}${changed === '' ? '' : '+'}`;
}
