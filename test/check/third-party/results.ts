import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CheckResult } from '@whoa/check';
import type { Run, WedgeReport } from './run.ts';

const FILE = join(import.meta.dirname, '../../../docs/evidence/check-results.json');

/** The results of one check on one subject, in each run. */
export interface Outcome {
  readonly id: string;
  readonly statuses: readonly CheckResult['status'][];
  /** The observations; only one if the runs agree. */
  readonly details: readonly string[];
}

/** The results of all checks on one subject. */
export interface SubjectResult {
  readonly name: string;
  /** The day of the last run. */
  readonly date: string;
  /** As it introduces itself. */
  readonly agent: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly outcomes: readonly Outcome[];
  /** The day of groups that were run later than the others, once. */
  readonly groups?: Readonly<Record<string, string>>;
  /** A remark about how the runs were made. New runs have none. */
  readonly remark?: string;
  /** As many runs of the same versions behind `whoa acp -- COMMAND`, each after one without it. */
  readonly proxied?: {
    readonly date: string;
    readonly outcomes: readonly Outcome[];
    /** The report about a suspended one; or why there is none. */
    readonly wedged?: WedgeReport | string;
  };
}

/** Adds a run to the results of the runs before it. */
export function addRun(before: readonly Outcome[], { results }: Run): readonly Outcome[] {
  return results.map(({ id, status, detail }) => {
    const old = before.find((outcome) => outcome.id === id) ?? { id, statuses: [], details: [] };
    const statuses = [...old.statuses, status];
    const observed = [...new Set([...old.details, detail])].filter((one) => one !== '');
    return { id, statuses, details: observed };
  });
}

/** The saved runs of the same versions, to continue an interrupted campaign. */
export function savedOutcomes(
  saved: SubjectResult | undefined,
  { versions, resume }: { readonly versions: SubjectResult['versions']; readonly resume: boolean },
): readonly Outcome[] {
  const isSame = JSON.stringify(saved?.versions) === JSON.stringify(versions);
  return resume && isSame ? saved!.outcomes : [];
}

/** How many runs a result is made of. */
export function countRuns({ outcomes }: Pick<SubjectResult, 'outcomes'>): number {
  return outcomes[0]?.statuses.length ?? 0;
}

export function readResults(): readonly SubjectResult[] {
  return existsSync(FILE) ? (JSON.parse(readFileSync(FILE, 'utf8')) as SubjectResult[]) : [];
}

/** Saves the result of one subject next to the others. */
export function saveResult(result: SubjectResult): void {
  const others = readResults().filter(({ name }) => name !== result.name);
  const all = [...others, result].sort((a, b) => a.name.localeCompare(b.name));
  writeFileSync(FILE, `${JSON.stringify(all, undefined, 2)}\n`);
}
