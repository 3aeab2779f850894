import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as core from '@whoa/core';
import * as testing from '@whoa/core/testing';
import { Digest } from './digest.ts';
import { copyReleases } from './releases.ts';
import { type Ground, type SeedReport, simulateSeed } from './simulate-seed.ts';
import type { BrokenSeed, Simulated } from './simulated.ts';

type Tasks = typeof import('@whoa/tasks');

export interface SeedsOptions {
  readonly from: number;
  readonly seeds: number;
  /** The folder with the sources of the tasks package. */
  readonly folder: string;
  readonly ground: Ground;
  /** Stop at the first violation. */
  readonly first: boolean;
  readonly trace: boolean;
}

/** Plays seeds one after the other, in this process. */
export async function playSeeds({ from, seeds, folder, ground, first, trace }: SeedsOptions): Promise<Simulated> {
  // Faults are errors, and nothing here reads where they came from: noting that takes longer than the faults.
  if (!trace) Error.stackTraceLimit = 0;
  using folders = ground === 'upgrade' ? await copyReleases(folder) : undefined;
  const releases = folders && { before: await loadTasks(folders.before), after: await loadTasks(folders.after) };
  const tasks = releases?.before ?? (await loadTasks(folder));
  const digest = new Digest();
  const broken: BrokenSeed[] = [];
  let [played, ended] = [0, 0];
  /** What nobody catches ends a real worker. */
  let crashed: unknown[] = [];
  const onCrash = (error: unknown): void => void crashed.push(error);
  using crashes = new DisposableStack();
  for (const event of ['unhandledRejection', 'uncaughtException'] as const) {
    process.on(event, onCrash);
    crashes.defer(() => process.off(event, onCrash));
  }
  for (let seed = from; seed < from + seeds; seed++) {
    const parts = { core, testing, tasks, releases, ground, trace };
    const {
      violations,
      digest: history,
      tasks: count,
    } = await simulateSeed(seed, parts).catch(createTruncatedReplyError);
    const crashReports = crashed.map((error) => `P2 a worker crashed: ${String(error)}`);
    crashed = [];
    digest.add(history);
    played++;
    ended += count;
    const found = [...violations.map(({ promise, what }) => `${promise} ${what}`), ...crashReports];
    if (found.length > 0) broken.push({ seed, violations: found });
    if (first && broken.length > 0) break;
  }
  return { seeds: played, tasks: ended, broken, digest: digest.text };
}

/** What a history throws would be taken for something that a worker did not catch. */
function createTruncatedReplyError(error: unknown): SeedReport {
  return { violations: [{ promise: 'P2', what: `the history broke off: ${String(error)}` }], digest: '', tasks: 0 };
}

async function loadTasks(folder: string): Promise<Tasks> {
  const load = (file: string): Promise<object> => import(pathToFileURL(join(folder, file)).href) as Promise<object>;
  const files = [
    'stores/memory.ts',
    'stores/sqlite.ts',
    'migration/migration.ts',
    'run/store-runner.ts',
    'run/questions/approvals.ts',
    'follow/follow.ts',
    'errors.ts',
    'unknown-outcome.ts',
  ];
  return Object.assign({}, ...(await Promise.all(files.map(load)))) as Tasks;
}
