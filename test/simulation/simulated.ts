import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Digest } from './digest.ts';
import type { SeedsJob } from './simulate-many.ts';

export interface BrokenSeed {
  readonly seed: number;
  readonly violations: readonly string[];
}

/** The summary of a range of seeds. */
export interface Simulated {
  readonly seeds: number;
  readonly tasks: number;
  readonly broken: readonly BrokenSeed[];
  /** A digest of all runs: the same seeds always give the same one. */
  readonly digest: string;
}

interface Range {
  readonly from: number;
  readonly seeds: number;
}

const programs = import.meta.dirname;
/** Far longer than any campaign here takes. */
const TIMEOUT_MS = 3_600_000;
/** Seeds per process, which bounds its memory. */
const SEEDS_EACH = 5_000;

/** Simulates seeds in a separate process. */
export const simulate = (...args: string[]): Promise<Simulated> => start('simulate.ts', '--json', ...args);

/** Simulates several ranges of seeds in one separate process. */
export const simulateMany = (jobs: readonly SeedsJob[]): Promise<Simulated[]> =>
  start('simulate-many.ts', JSON.stringify(jobs));

async function start<T>(program: string, ...args: string[]): Promise<T> {
  const command = ['--conditions=@whoa/source', '--no-warnings', join(programs, program), ...args];
  const options = { timeout: TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024 };
  const { stdout } = await promisify(execFile)(process.execPath, command, options).catch(
    // It exits with 1 when it has found a violation.
    (error: Error & { stdout: string; code?: number }) => {
      if (error.code === 1 && error.stdout.startsWith('{')) return error;
      throw error;
    },
  );
  return JSON.parse(stdout) as T;
}

/** Simulates seeds in several processes at the same time. */
export async function simulateInProcesses(
  { from, seeds }: Range,
  { processes, args }: { readonly processes: number; readonly args: readonly string[] },
): Promise<Simulated> {
  const ranges: Range[] = [];
  for (let at = 0; at < seeds; at += SEEDS_EACH) {
    ranges.push({ from: from + at, seeds: Math.min(SEEDS_EACH, seeds - at) });
  }
  const parts: Simulated[] = [];
  // A shared iterator: each worker takes the next range.
  const left = ranges.entries();
  const simulateNext = async (): Promise<void> => {
    for (const [i, range] of left) {
      parts[i] = await simulate('--from', `${range.from}`, '--seeds', `${range.seeds}`, ...args);
    }
  };
  await Promise.all(Array.from({ length: processes }, simulateNext));
  const digest = new Digest();
  for (const part of parts) digest.add(part.digest);
  const sum = (count: (part: Simulated) => number): number => parts.reduce((all, part) => all + count(part), 0);
  return {
    seeds: sum((part) => part.seeds),
    tasks: sum((part) => part.tasks),
    broken: parts.flatMap((part) => part.broken),
    digest: digest.text,
  };
}
