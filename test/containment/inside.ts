// Runs a script in a sandbox exactly as a containment starts it, as root or as another user.
import { spawnSync } from 'node:child_process';
import { lchownSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SandboxOptions } from '../../packages/tools/src/sandbox/options.ts';
import { createSandbox } from '../../packages/tools/src/sandbox/sandbox.ts';
import type { Workspace } from '../workspace.ts';

export const USERS: readonly string[] = process.getuid?.() === 0 ? ['root', 'nobody'] : ['user'];
const NOBODY_ID = 65_534;
const LIMITS = { memoryBytes: 400 << 20, processes: 100, tempBytes: 200 << 20 };

/** The command that starts a program as a user. */
export function as(user: string): readonly string[] {
  return user === 'nobody' ? ['setpriv', `--reuid=${NOBODY_ID}`, `--regid=${NOBODY_ID}`, '--clear-groups'] : [];
}

/** Node's compile cache, for a user who cannot write to ours. */
export function compiledFolder(user: string): string | undefined {
  if (user !== 'nobody') return process.env['NODE_COMPILE_CACHE'];
  const folder = join(tmpdir(), 'whoa-test-compiled');
  mkdirSync(folder, { recursive: true });
  lchownSync(folder, NOBODY_ID, NOBODY_ID);
  return folder;
}

/** Gives files in a folder to a user. */
export function giveTo(user: string, folder: Workspace, names: readonly string[] = ['.', ...folder.list()]): void {
  if (user === 'nobody') for (const name of names) lchownSync(folder.at(name), NOBODY_ID, NOBODY_ID);
}

export interface InsideOptions {
  readonly sandbox: Pick<SandboxOptions, 'kind' | 'workspace' | 'hidden' | 'writable'>;
  readonly env: Readonly<Record<string, string>>;
  readonly user: string;
  /** The private folder of the host. */
  readonly folder: string;
}

/** Returns everything that the script printed, and its exit code. */
export async function runInside(
  script: string,
  { sandbox: options, env, user, folder }: InsideOptions,
): Promise<string> {
  const sandbox = createSandbox({ ...options, limits: LIMITS })!;
  await sandbox.open(folder);
  const argv = ['bash', '-c', script];
  const entrance = sandbox.enter({ argv, env, cwd: undefined, stdio: ['ignore', 'pipe', 'pipe'], folder });
  const [file = '', ...args] = [...as(user), ...entrance.argv];
  const { stdout, stderr, status } = spawnSync(file, args, {
    stdio: entrance.stdio,
    env: { PATH: process.env['PATH'] },
    timeout: 60_000,
    killSignal: 'SIGKILL',
  });
  entrance[Symbol.dispose]();
  return `${stdout.toString()}${stderr.toString()}\n[${status}]`;
}
