import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { STATUS_TABLE } from '../../packages/tasks/src/ledger/rules/status.ts';

const run = promisify(execFile);
/** Long enough for the largest configuration on a busy machine. */
const CHECK_MS = 3_600_000;

export type StatusTable = Readonly<Record<string, Readonly<Record<string, string>>>>;

export interface Configuration {
  readonly workers: 2 | 3;
  readonly faults: number;
  /** Switches of the model: `BUG_…` plants a bug, others change the configuration. */
  readonly switches?: readonly string[];
  /** Keep hashes of states instead of states: less memory, and a state may be taken for another. */
  readonly compact?: boolean;
  /** Another table than that of the stores. */
  readonly table?: StatusTable;
}

export interface Checked {
  /** The first violation. */
  readonly violation?: string;
  readonly states: number;
  /** False: Spin ran out of memory or depth before it had seen every state. */
  readonly isWhole: boolean;
}

/** The table of statuses and moves as text for the model. */
export function toModel(table: StatusTable): string {
  const statuses = Object.keys(table);
  const actions = Object.keys(table[statuses[0]!]!);
  const numbers = statuses.map((status, i) => `#define ${status.toUpperCase()} ${i + 1}`);
  const after = actions.map((action) => {
    const cells = statuses.filter((status) => statuses.includes(table[status]![action]!));
    const value = cells.reduceRight(
      (rest, status) => `((s) == ${status.toUpperCase()} -> ${table[status]![action]!.toUpperCase()} : ${rest})`,
      'REFUSED',
    );
    return `#define AFTER_${action.toUpperCase()}(s) ${value}`;
  });
  return [...numbers, '#define REFUSED 99', ...after, ''].join('\n');
}

/** Checks the delivery protocol with Spin: every state that can be reached. */
export function checkModel(configuration: Configuration): Promise<Checked> {
  const { workers, faults, switches = [], compact = false, table = STATUS_TABLE } = configuration;
  const search = ['-n', '-m2000000', compact ? '-w26' : '-w24'];
  return runSpin('delivery.pml', { switches: [`W=${workers}`, `F=${faults}`, ...switches], compact, table, search });
}

/** Checks the protocol of questions in the same way. */
export function checkQuestions(switches: readonly string[], { isLarge = false } = {}): Promise<Checked> {
  // A process may wait for ever: the model itself defines when.
  return runSpin('questions.pml', { switches, compact: isLarge, table: STATUS_TABLE, search: ['-E', '-m400000'] });
}

/** Checks the protocol of live text in the same way. */
export function checkLive(switches: readonly string[]): Promise<Checked> {
  return runSpin('live.pml', { switches, compact: false, table: STATUS_TABLE, search: ['-E', '-m1000000', '-w24'] });
}

interface Search extends Required<Pick<Configuration, 'switches' | 'compact' | 'table'>> {
  /** Arguments of the search. */
  readonly search: readonly string[];
}

async function runSpin(file: string, { switches, compact, table, search }: Search): Promise<Checked> {
  const folder = await mkdtemp(join(tmpdir(), 'whoa-model-'));
  const here = { cwd: folder, maxBuffer: 64 * 1024 * 1024, timeout: CHECK_MS };
  try {
    await copyFile(join(import.meta.dirname, file), join(folder, file));
    await writeFile(join(folder, 'status.h'), toModel(table));
    await run('spin', ['-a', ...switches.map((name) => `-D${name}`), file], here);
    const storage = compact ? ['-DHC4'] : ['-DCOLLAPSE'];
    await run(
      'gcc',
      [compact ? '-O2' : '-O0', '-w', '-DSAFETY', '-DMEMLIM=8000', '-DVECTORSZ=2048', ...storage, '-o', 'pan', 'pan.c'],
      here,
    );
    const { stdout } = await run(join(folder, 'pan'), [...search], here);
    const violation = /^pan:\d+: (.*)$/mu.exec(stdout)?.[1];
    const states = Number(/([\d.e+]+) states, stored/u.exec(stdout)?.[1] ?? 0);
    const isWhole = !/Search not completed|max search depth too small|out of memory/iu.test(stdout);
    return { states, isWhole, ...(violation !== undefined && { violation }) };
  } finally {
    await rm(folder, { recursive: true });
  }
}
