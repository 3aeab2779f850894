import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as core from '@whoa/core';
import * as testing from '@whoa/core/testing';
import { Digest } from './digest.ts';
import type { BusFaults } from './network.ts';
import { copyReleases } from './releases.ts';
import { type Profile, type SeedReport, simulateSeed } from './simulate-seed.ts';
import type { BrokenSeed, Simulated } from './simulated.ts';

type Tasks = typeof import('@whoa/tasks');

export interface SeedsOptions {
  readonly from: number;
  readonly seeds: number;
  /** The folder with the sources of the tasks package. */
  readonly folder: string;
  readonly profile: Profile;
  readonly bus?: BusFaults | undefined;
  /** Stop at the first violation. */
  readonly first: boolean;
  readonly trace: boolean;
}

/** Simulates seeds one at a time, in this process. */
export async function simulateSeeds({
  from,
  seeds,
  folder,
  profile,
  bus,
  first,
  trace,
}: SeedsOptions): Promise<Simulated> {
  // Faults are errors whose stacks nothing here reads, and recording stacks takes longer than the faults.
  if (!trace) Error.stackTraceLimit = 0;
  using folders = profile === 'upgrade' ? await copyReleases(folder) : undefined;
  const releases = folders && { before: await loadTasks(folders.before), after: await loadTasks(folders.after) };
  const tasks = releases?.before ?? (await loadTasks(folder));
  const digest = new Digest();
  const broken: BrokenSeed[] = [];
  let [simulated, ended] = [0, 0];
  /** An unhandled error ends a real worker. */
  let crashed: unknown[] = [];
  const onCrash = (error: unknown): void => void crashed.push(error);
  using crashes = new DisposableStack();
  for (const event of ['unhandledRejection', 'uncaughtException'] as const) {
    process.on(event, onCrash);
    crashes.defer(() => process.off(event, onCrash));
  }
  for (let seed = from; seed < from + seeds; seed++) {
    const parts = { core, testing, tasks, releases, profile, bus, trace };
    const { violations, digest: history, tasks: count } = await simulateSeed(seed, parts).catch(toBrokenSeed);
    const crashReports = crashed.map((error) => `P2 a worker crashed: ${String(error)}`);
    crashed = [];
    digest.add(history);
    simulated++;
    ended += count;
    const found = [...violations.map(({ promise, what }) => `${promise} ${what}`), ...crashReports];
    if (found.length > 0) broken.push({ seed, violations: found });
    if (first && broken.length > 0) break;
  }
  return { seeds: simulated, tasks: ended, broken, digest: digest.text };
}

/** Otherwise an error of the simulation would look like one that a worker did not catch. */
function toBrokenSeed(error: unknown): SeedReport {
  return { violations: [{ promise: 'P2', what: `the history broke off: ${String(error)}` }], digest: '', tasks: 0 };
}

async function loadTasks(folder: string): Promise<Tasks> {
  const load = (file: string): Promise<object> => import(pathToFileURL(join(folder, file)).href) as Promise<object>;
  const files = [
    'ledger/memory.ts',
    'ledger/factory.ts',
    'ledger/migration/migration.ts',
    'run/store-runner.ts',
    'run/questions/approvals.ts',
    'follow/follow.ts',
    'errors.ts',
    'unknown-outcome.ts',
  ];
  return Object.assign({}, ...(await Promise.all(files.map(load)))) as Tasks;
}
