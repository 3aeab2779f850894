// The log of campaigns that are too long for CI: docs/evidence/campaign-log.md, one line for each.
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { withBounds } from './bounds.ts';

/** One campaign. */
export interface LedgerEntry {
  /** Without a time: 2026-11-16. */
  readonly date: string;
  /** What was tested. It ends with `+` when files were changed since. */
  readonly commit: string;
  readonly campaign: string;
  readonly store: string;
  /** The first and the last, where there are seeds. */
  readonly seeds?: readonly [from: number, to: number];
  readonly count: number;
  /** What was counted: runs, bugs. */
  readonly unit: string;
  readonly violations: number;
}

const root = join(import.meta.dirname, '../..');
const PAGE = 'docs/evidence/campaign-log.md';
const PROMISES = 'docs/promises/index.md';
const ROW =
  /^\| (\d{4}-\d\d-\d\d) \| `([0-9a-f]{7,}\+?)` \| ([\w-]+) \| ([\w -]+) \| (?:([\d,]+) to ([\d,]+)|none) \| ([\d,]+) (\w+) \| ([\d,]+) \|$/;

/** Appends what a campaign found, and brings the bounds of the promises up to date. */
export async function addToLedger(entry: Omit<LedgerEntry, 'date' | 'commit'>): Promise<void> {
  const page = await readFile(join(root, PAGE), 'utf8');
  const row = rowOf({ date: new Date().toISOString().slice(0, 10), commit: commitNow(), ...entry });
  const written = `${page.trimEnd()}\n${row}\n`;
  await writeFile(join(root, PAGE), written);
  const promises = join(root, PROMISES);
  await writeFile(promises, withBounds(await readFile(promises, 'utf8'), readLedger(written)));
}

/** Returns the entries of a ledger. Throws for a line of its table that is not one. */
export function readLedger(page: string): LedgerEntry[] {
  const rows = page.split('\n').filter((line) => line.startsWith('|'));
  return rows.slice(2).map((row) => {
    const [, date, commit, campaign, store, from, to, count, unit, violations] = ROW.exec(row) ?? [];
    if (date === undefined) throw new SyntaxError(`not a line of a ledger: ${row}`);
    return {
      date,
      commit: commit!,
      campaign: campaign!,
      store: store!,
      ...(from !== undefined && { seeds: [numberOf(from), numberOf(to!)] as const }),
      count: numberOf(count!),
      unit: unit!,
      violations: numberOf(violations!),
    };
  });
}

export function rowOf({ date, commit, campaign, store, seeds, count, unit, violations }: LedgerEntry): string {
  const played = seeds === undefined ? 'none' : `${toText(seeds[0])} to ${toText(seeds[1])}`;
  const cells = [date, `\`${commit}\``, campaign, store, played, `${toText(count)} ${unit}`, toText(violations)];
  return `| ${cells.join(' | ')} |`;
}

function toText(count: number): string {
  return count.toLocaleString('en');
}

function numberOf(text: string): number {
  return Number(text.replaceAll(',', ''));
}

/** What is checked out, and whether anything but the pages that campaigns write differs from it. */
function commitNow(): string {
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  const changed = git('status', '--porcelain', '--', '.', `:!${PAGE}`, `:!${PROMISES}`);
  return `${git('rev-parse', '--short=12', 'HEAD')}${changed === '' ? '' : '+'}`;
}
