// The log of campaigns that are too long for CI: docs/evidence/campaign-log.md, one line for each.
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { withBounds } from './bounds.ts';

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
const PAGE = 'docs/evidence/campaign-log.md';
const PROMISES = 'docs/promises/index.md';
const ROW =
  /^\| (\d{4}-\d\d-\d\d) \| `([0-9a-f]{7,}\+?)` \| ([\w-]+) \| ([\w -]+) \| (?:([\d,]+) to ([\d,]+)|none) \| ([\d,]+) (\w+) \| ([\d,]+) \|$/;

/** Appends a campaign's result, and updates the bounds of the promises. */
export async function addToCampaignLog(entry: Omit<LogEntry, 'date' | 'commit'>): Promise<void> {
  const page = await readFile(join(root, PAGE), 'utf8');
  const row = toRow({ date: new Date().toISOString().slice(0, 10), commit: commitNow(), ...entry });
  const written = `${page.trimEnd()}\n${row}\n`;
  await writeFile(join(root, PAGE), written);
  const promises = join(root, PROMISES);
  await writeFile(promises, withBounds(await readFile(promises, 'utf8'), readCampaignLog(written)));
}

/** Returns the entries of a campaign log. Throws for a line of its table that is not one. */
export function readCampaignLog(page: string): LogEntry[] {
  const rows = page.split('\n').filter((line) => line.startsWith('|'));
  return rows.slice(2).map((row) => {
    const [, date, commit, campaign, store, from, to, count, unit, violations] = ROW.exec(row) ?? [];
    if (date === undefined) throw new SyntaxError(`not a line of a campaign log: ${row}`);
    return {
      date,
      commit: commit!,
      campaign: campaign!,
      store: store!,
      ...(from !== undefined && { seeds: [parseNumber(from), parseNumber(to!)] as const }),
      count: parseNumber(count!),
      unit: unit!,
      violations: parseNumber(violations!),
    };
  });
}

export function toRow({ date, commit, campaign, store, seeds, count, unit, violations }: LogEntry): string {
  const range = seeds === undefined ? 'none' : `${toText(seeds[0])} to ${toText(seeds[1])}`;
  const cells = [date, `\`${commit}\``, campaign, store, range, `${toText(count)} ${unit}`, toText(violations)];
  return `| ${cells.join(' | ')} |`;
}

function toText(count: number): string {
  return count.toLocaleString('en');
}

function parseNumber(text: string): number {
  return Number(text.replaceAll(',', ''));
}

/** The checked-out commit, with `+` if any file other than the pages that campaigns write differs from it. */
function commitNow(): string {
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  const changed = git('status', '--porcelain', '--', '.', `:!${PAGE}`, `:!${PROMISES}`);
  return `${git('rev-parse', '--short=12', 'HEAD')}${changed === '' ? '' : '+'}`;
}
