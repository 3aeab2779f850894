import { spawnSync } from 'node:child_process';
import { type Containment, createContainment, detectContainments, type Technique } from '@whoa/tools';
import type { DetectedTechnique } from '../../packages/tools/src/process/containment/technique.ts';
import { ESCAPES, type EscapeKind } from './escapes.ts';
import { type Round, runRound } from './round.ts';

/** One field of the table. */
export interface Cell {
  readonly escapeKind: EscapeKind;
  readonly technique: Technique;
  /** Whether this technique promises that nothing is left. */
  readonly isPromised: boolean;
  readonly rounds: readonly Round[];
}

/** The containments that work here and prove something. */
export async function findTechniques(): Promise<readonly DetectedTechnique[]> {
  const detected = await detectContainments();
  return detected.filter(({ isAvailable, verified }) => isAvailable && verified !== 'no');
}

/** The classes that this machine has the programs for. */
export function findClasses(): readonly EscapeKind[] {
  const isThere = (program: string): boolean => spawnSync('which', [program]).status === 0;
  const isRoot = process.getuid?.() === 0;
  return ESCAPES.filter(
    ({ needs, needsRoot = false }) => (needs === undefined || isThere(needs)) && (isRoot || !needsRoot),
  );
}

export async function runCell(escapeKind: EscapeKind, containment: Containment, rounds: number): Promise<Cell> {
  const completed: Round[] = [];
  for (let round = 0; round < rounds; round++) completed.push(await runRound(escapeKind, containment));
  const technique = await containment.ready();
  const { shedsEveryTag, leavesCgroup } = escapeKind;
  const isPromised = !(technique === 'tags' ? shedsEveryTag : technique === 'cgroup' && leavesCgroup);
  return { escapeKind, technique, isPromised, rounds: completed };
}

/** Runs every escape against every containment. */
export async function runEscapes(rounds: number): Promise<readonly Cell[]> {
  const cells: Cell[] = [];
  for (const { technique } of await findTechniques()) {
    await using containment = createContainment({ technique });
    for (const escapeKind of findClasses()) cells.push(await runCell(escapeKind, containment, rounds));
  }
  return cells;
}

/** The cells with survivors that are missing from the report. */
export function findUnreported(cells: readonly Cell[]): readonly Cell[] {
  return cells.filter(
    ({ isPromised, rounds }) =>
      isPromised && rounds.some(({ survivors, reported, verified }) => verified !== 'no' && survivors > reported),
  );
}

/** One line for each technique: how many stops, and what they left. */
export function summarize(cells: readonly Cell[]): string {
  const techniques = [...new Set(cells.map(({ technique }) => technique))];
  const lines = techniques.map((technique) => {
    const promised = cells.filter((cell) => cell.technique === technique && cell.isPromised);
    const rounds = promised.flatMap((cell) => cell.rounds);
    const count = (isSo: (round: Round) => boolean): number => rounds.filter(isSo).length;
    const times = rounds.map(({ ms }) => ms).toSorted((a, b) => a - b);
    const at = (share: number): string => (times[Math.floor(times.length * share)] ?? 0).toFixed(1);
    const unreported = count(({ survivors, reported, verified }) => verified !== 'no' && survivors > reported);
    return `${technique}: ${rounds.length} stops of ${new Set(promised.map(({ escapeKind }) => escapeKind.name)).size} escapes, ${count(({ survivors }) => survivors > 0)} with a process alive at return, ${unreported} unreported, ${count(({ verified }) => verified === 'no')} not proved, p50 ${at(0.5)} ms, p95 ${at(0.95)} ms`;
  });
  return lines.join('\n');
}

/** Class × containment: rounds without survivors, and the median time to the result. */
export function formatEscapes(cells: readonly Cell[]): string {
  const techniques = [...new Set(cells.map(({ technique }) => technique))];
  const lines = [['', ...techniques.map((technique) => technique.padEnd(18))]];
  for (const name of new Set(cells.map(({ escapeKind }) => escapeKind.name))) {
    const row = techniques.map((technique) => {
      const cell = cells.find((one) => one.escapeKind.name === name && one.technique === technique);
      return (cell === undefined ? '' : describe(cell)).padEnd(18);
    });
    lines.push([name, ...row]);
  }
  const table = lines.map(([name = '', ...row]) => `${name.padEnd(36)}${row.join('')}`.trimEnd());
  return [...table, '* not promised'].join('\n');
}

function describe({ rounds, isPromised }: Cell): string {
  const clean = rounds.filter(({ survivors, zombies }) => survivors === 0 && zombies === 0).length;
  const median = rounds.map(({ ms }) => ms).toSorted((a, b) => a - b)[rounds.length >> 1]!;
  return `${clean}/${rounds.length} ${median.toFixed(1)} ms${isPromised ? '' : ' *'}`;
}
