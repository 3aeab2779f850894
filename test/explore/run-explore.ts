import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

interface Explored {
  readonly schedules: number;
  readonly violation?: string;
}

/** Explores schedules in a separate process. */
export async function explore(...args: string[]): Promise<Explored> {
  const command = ['--conditions=@whoa/source', '--no-warnings', join(import.meta.dirname, 'explore.ts'), ...args];
  const { stdout } = await promisify(execFile)(process.execPath, command).catch((error: { stdout: string }) => error);
  return JSON.parse(stdout) as Explored;
}

/** Explores `schedules` schedules in two processes. */
export const exploreInTwo = (schedules: number): Promise<readonly Explored[]> =>
  Promise.all([1, 2].map((seed) => explore('--schedules', `${schedules / 2}`, '--seed', `${seed}`)));
