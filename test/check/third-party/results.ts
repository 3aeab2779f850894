import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CheckResult } from '@whoa/check';
import type { Run, WedgeReport } from './run.ts';

const FILE = join(import.meta.dirname, '../../../docs/evidence/check-results.json');

/** What came of one check on one subject, in each run. */
export interface Outcome {
  readonly id: string;
  readonly statuses: readonly CheckResult['status'][];
  /** What was observed; once, if the runs agree. */
  readonly said: readonly string[];
}

/** What came of all checks on one subject. */
export interface SubjectResult {
  readonly name: string;
  /** The day of the last run. */
  readonly date: string;
  /** As it introduces itself. */
  readonly agent: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly outcomes: readonly Outcome[];
  /** What a reader should know of how the runs were made. New runs have none. */
  readonly remark?: string;
  /** As many runs of the same versions behind `whoa acp -- COMMAND`, each after one without it. */
  readonly proxied?: {
    readonly date: string;
    readonly outcomes: readonly Outcome[];
    /** What came of one that did nothing any more; or why that is not known. */
    readonly wedged?: WedgeReport | string;
  };
}

/** Adds a run to what came of the runs before it. */
export function addRun(before: readonly Outcome[], { results }: Run): readonly Outcome[] {
  return results.map(({ id, status, detail }) => {
    const old = before.find((outcome) => outcome.id === id) ?? { id, statuses: [], said: [] };
    const statuses = [...old.statuses, status];
    const observed = [...new Set([...old.said, detail])].filter((one) => one !== '');
    return { id, statuses, said: observed };
  });
}

/** The runs to go on from: those saved of the same versions, if an interrupted campaign is resumed. */
export function savedOutcomes(
  saved: SubjectResult | undefined,
  { versions, resume }: { readonly versions: SubjectResult['versions']; readonly resume: boolean },
): readonly Outcome[] {
  const isSame = JSON.stringify(saved?.versions) === JSON.stringify(versions);
  return resume && isSame ? saved!.outcomes : [];
}

/** How many runs a result is made of. */
export function runsOf({ outcomes }: Pick<SubjectResult, 'outcomes'>): number {
  return outcomes[0]?.statuses.length ?? 0;
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
