// Runs before every test file: a file fails if it swallows a rejection, warns, or leaves something running.
import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { isMainThread } from 'node:worker_threads';
import { afterAll, beforeAll, expect } from 'vitest';
import { countCpuTime } from './cpu-times.ts';
import { findRunningChildren, readOrNothing } from './running-children.ts';

/** How long a process may take to end after its signal. esbuild's `stop`, for one, does not wait for it. */
const ENDING_MS = 10_000;

const problems: unknown[] = [];
const note = (complaint: unknown): void => {
  problems.push(complaint);
};

// Node 22 warns that `node:sqlite` is experimental.
const isExpected = (warning: Error): boolean => warning.message.startsWith('SQLite is an experimental feature');

const noteWarning = (warning: Error): void => void (isExpected(warning) || note(warning));

let endCpuTime: (() => void) | undefined;

beforeAll(() => {
  process.on('unhandledRejection', note);
  process.on('warning', noteWarning);
  if (isMainThread) endCpuTime = countCpuTime(expect.getState().testPath ?? '?');
});

afterAll(async () => {
  // Give an unhandled rejection the turn it needs to be noticed.
  await new Promise((resolve) => setImmediate(resolve));
  process.off('unhandledRejection', note);
  process.off('warning', noteWarning);
  await noteProcesses();
  endCpuTime?.();
  // Files may share a process, and then this module.
  const found = problems.splice(0);
  if (found.length > 0) throw new AggregateError(found, `unhandled or warned of: ${found.join('; ')}`);
});

/** Where the kernel tells: no child runs, and no folder of a host is left. */
async function noteProcesses(): Promise<void> {
  if (process.platform !== 'linux' || !isMainThread) return;
  const until = performance.now() + ENDING_MS;
  let left = findRunningChildren(process.pid);
  while (left.length > 0 && performance.now() < until) {
    await new Promise((resolve) => setImmediate(resolve));
    left = findRunningChildren(process.pid);
  }
  for (const child of left) note(new Error(`a process was left: ${child}`));
  for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith('whoa-host-'))) {
    const isOurs = readOrNothing(`${tmpdir()}/${name}/host.json`).includes(`"pid":${process.pid},`);
    if (isOurs) note(new Error(`a folder was left: ${name}`));
  }
}
