import { type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, delimiter, isAbsolute, join, relative, sep } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';

/** Folders that a project cannot write to. */
const SYSTEM_FOLDERS: readonly string[] =
  '/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/opt/homebrew/bin:/run/current-system/sw/bin'.split(':');

/**
 * Finds a program that we chose, such as bubblewrap, in the folders of the system. Never start one through PATH, in which a
 * project can have folders, and give it an empty environment.
 */
export function findHelper(name: string): string | undefined {
  return SYSTEM_FOLDERS.map((folder) => join(folder, name)).find(canRun);
}

/** As `findHelper`. Throws if it is not installed. */
export function requireHelper(name: string): string {
  const file = process.platform === 'win32' ? name : findHelper(name);
  if (file !== undefined) return file;
  throw Object.assign(new Error(`${name} is not installed in ${SYSTEM_FOLDERS.join(', ')}`), { code: 'ENOENT' });
}

const MAX_TRY_MS = 10_000;

/** Runs a program to see whether something works on this machine. Throws what it wrote if it fails. */
export async function tryProgram(
  argv: readonly string[],
  stdio: StdioOptions = ['ignore', 'ignore', 'pipe'],
): Promise<void> {
  const [file = '', ...args] = argv;
  const child = spawn(file, args, { env: {}, timeout: MAX_TRY_MS, killSignal: 'SIGKILL', stdio });
  const said = text(child.stderr as Readable).catch(() => '');
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code === 0) return;
  const reason = (await said).trim().replaceAll('\n', '; ').slice(0, 1_000);
  throw new Error(reason || `${basename(file)} ended with ${code}`);
}

/** Returns the entries of PATH that agents in a workspace cannot write to. */
export function pathOutside(workspace: string, path = ''): string {
  const entries = path.split(delimiter).filter((folder) => isOutside(workspace, folder));
  return entries.join(delimiter);
}

/** Finds a program that the user named, and returns its full path. A name with a slash is a path already. */
export function findProgram(
  name: string,
  { workspace, path }: { workspace: string; path: string | undefined },
): string {
  if (name.includes('/')) return name;
  const files = pathOutside(workspace, path)
    .split(delimiter)
    .map((folder) => join(folder, name));
  const file = files.find((one) => canRun(one) && isOutside(workspace, realpathSync(one)));
  if (file !== undefined) return file;
  throw new Error(`Could not find '${name}' in PATH outside ${workspace}; install it, or use its full path`);
}

/** A workspace with a home folder in it has no sandbox, and all programs of the user. */
function isOutside(workspace: string, path: string): boolean {
  if (SYSTEM_FOLDERS.includes(path)) return true;
  if (!isAbsolute(path)) return false;
  const root = resolveRealPath(workspace);
  return isUnder(root, resolveRealPath(homedir())) || !(isUnder(root, path) || isUnder(root, resolveRealPath(path)));
}

function resolveRealPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function canRun(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** Whether a path is the folder or inside it. */
export function isUnder(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === '' || !(way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way));
}
