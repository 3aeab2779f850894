import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CheckResult } from '@whoa/check';
import type { Run } from './run.ts';

const FILE = join(import.meta.dirname, '../../../docs/check-results.json');

/** What came of one check on one subject, in each run. */
export interface Outcome {
  readonly id: string;
  readonly statuses: readonly Run['results'][number]['status'][];
  /** What was observed; once, if the runs agree. */
  readonly said: readonly string[];
  /** Left out where nothing failed. */
  readonly rule?: CheckResult['rule'];
}

/** What came of all checks on one subject. */
export interface SubjectResult {
  readonly name: string;
  readonly date: string;
  /** As it introduces itself. */
  readonly agent: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly outcomes: readonly Outcome[];
}

/** Puts the runs of one subject together. */
export function combine(runs: readonly Run[]): readonly Outcome[] {
  return runs[0]!.results.map(({ id }) => {
    const all = runs.map(({ results }) => results.find((one) => one.id === id)!);
    const statuses = all.map(({ status }) => status);
    const hasFailed = statuses.some((status) => status === 'failed' || status === 'unclear');
    const rule = hasFailed ? { rule: all[0]!.rule } : {};
    return { id, statuses, said: [...new Set(all.map(({ said }) => said).filter((said) => said !== ''))], ...rule };
  });
}

export function readResults(): readonly SubjectResult[] {
  return existsSync(FILE) ? (JSON.parse(readFileSync(FILE, 'utf8')) as SubjectResult[]) : [];
}

/** Saves the result of one subject beside those of the others. */
export function saveResult(result: SubjectResult): void {
  const others = readResults().filter(({ name }) => name !== result.name);
  const all = [...others, result].sort((a, b) => a.name.localeCompare(b.name));
  writeFileSync(FILE, `${JSON.stringify(all, undefined, 2)}\n`);
}
