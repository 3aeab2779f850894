import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { plant } from '../plant.ts';
import type { PlantedBug } from './planted.ts';

export interface Simulated {
  readonly seeds: number;
  readonly tasks: number;
  readonly broken: number;
  readonly firstBroken?: { readonly seed: number; readonly violation: string };
  readonly digest: string;
}

const root = join(import.meta.dirname, '../..');
const program = join(import.meta.dirname, 'simulate.ts');
/** Far more than any campaign here takes: what is not over by then says nothing about a bug. */
const TIMEOUT_MS = 3_600_000;

/** Plays seeds in a process of its own. */
export async function simulate(...args: string[]): Promise<Simulated> {
  const command = ['--conditions=@whoa/source', '--no-warnings', program, '--json', ...args];
  const options = { timeout: TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024 };
  const { stdout } = await promisify(execFile)(process.execPath, command, options).catch(
    // It ends with 1 when it has found something.
    (error: Error & { stdout: string; code?: number }) => {
      if (error.code === 1 && error.stdout.startsWith('{')) return error;
      throw error;
    },
  );
  return JSON.parse(stdout) as Simulated;
}

/** Plants a bug in a copy of the sources, and plays seeds with it until one finds it. */
export async function tryPlanted({ changes }: PlantedBug, seeds: number): Promise<Simulated> {
  await mkdir(join(root, '.cache'), { recursive: true });
  // Inside the project: the copy finds the other packages where the original does.
  const folder = await mkdtemp(join(root, '.cache/planted-'));
  try {
    await cp(join(root, 'packages/tasks/src'), folder, { recursive: true });
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
    await plant(changes, folder);
    return await simulate('--seeds', `${seeds}`, '--tasks', folder, '--first');
  } finally {
    await rm(folder, { recursive: true });
  }
}
