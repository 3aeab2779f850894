import { dirname, join, resolve } from 'node:path';
import { isUnder } from '../process/programs.ts';
import { EXECUTES, readGitSettings, userEnvironment } from './git-settings.ts';
import { findRepositories, findStats, UNASKED, walkFolders } from './run-later.ts';

const MAX_FOLDERS = 2_000;
const MAX_REPOSITORIES = 64;

/** Arguments of bubblewrap that protect parts of a workspace. */
export interface Guards {
  readonly forCommands: readonly string[];
  readonly forGit: readonly string[];
}

const isLink = (path: string): boolean => findStats(path)?.isSymbolicLink() === true;
const isSocket = (path: string): boolean => findStats(path)?.isSocket() === true;

/** Finds the sockets of daemons in a workspace, which would run commands outside, except those that commands may use. */
export async function findSockets(workspace: string, allowed: readonly string[]): Promise<string[]> {
  const sockets: string[] = [];
  await walkFolders(workspace, { maxFolders: MAX_FOLDERS, skip: ['node_modules'] }, (folder, entries = []) => {
    for (const entry of entries) if (entry.isSocket()) sockets.push(join(folder, entry.name));
  });
  return sockets.filter((path) => !allowed.some((one) => isUnder(one, path)));
}

/** Bubblewrap's arguments that cover sockets. It would leave a file where one is gone. */
export const maskSockets = (sockets: readonly string[]): string[] =>
  sockets.filter(isSocket).flatMap((path) => ['--ro-bind', '/dev/null', path]);

/** Bubblewrap's arguments that protect one path. */
type Guard = readonly [path: string, ...mount: string[]];

/**
 * Protects what runs later, outside the sandbox: what is on the list at the top of the workspace, repositories, the files
 * that their settings name, and our own code if it is installed there. What does not exist is not covered by a mount: bubblewrap
 * would leave an empty file there, which breaks git.
 *
 * @returns Arguments of bubblewrap, for commands and for git itself, which may change files on the list.
 */
export async function guardWorkspace(workspace: string, hidden: readonly string[]): Promise<Guards> {
  const repositories: string[] = [];
  await walkFolders(workspace, { maxFolders: MAX_FOLDERS, skip: ['.git', 'node_modules'] }, (folder, entries) => {
    const found = findRepositories(folder, entries).filter((git) => git !== workspace);
    repositories.push(...found.slice(0, MAX_REPOSITORIES - repositories.length));
  });
  const listed = UNASKED.map((name) => join(workspace, name));
  // A mount covers what a link points to, and never the link.
  const link = listed.flatMap((path) => [dirname(path), path]).find((path) => isUnder(workspace, path) && isLink(path));
  if (link !== undefined) {
    throw new Error(
      `sandbox.workspace: ${link} is a symbolic link, which cannot be protected; replace it with what it points to`,
    );
  }
  const always = [...repositories, ...ownCode(workspace)];
  const used = await Promise.all(repositories.map((git) => guardGitFiles(git.replace(/\/\.git$/, ''))));
  const guards = [
    ...always.filter(exists).map(readOnly),
    ...used.flat().filter(([path]) => isUnder(workspace, path) && !path.split('/').includes('.git')),
    ...hidden.map((path): Guard => [path, ...hide(path)]),
  ];
  const forGit = guards.filter(([path]) => !listed.includes(path));
  return {
    forCommands: mountGuards(workspace, [...listed.filter(exists).map(readOnly), ...guards]),
    forGit: mountGuards(workspace, forGit),
  };
}

/** An empty folder instead of a folder. */
export const hide = (path: string): string[] => ['--tmpfs', path, '--remount-ro', path];
const readOnly = (path: string): Guard => [path, '--ro-bind-try', path, path];

function exists(path: string): boolean {
  const stats = findStats(path);
  return stats?.isFile() === true || stats?.isDirectory() === true;
}

/** Files in the work tree that git reads settings from or starts: included settings, hooks, filters. */
async function guardGitFiles(folder: string): Promise<Guard[]> {
  const guards = (await readGitSettings(folder, userEnvironment())).flatMap(({ file, key, value }): Guard[] => {
    const origin = resolve(folder, file);
    const isNamed = !/^(?:$|[~%])/.test(value);
    // Absent, these may be covered: an empty file has no settings, and an empty folder no hooks.
    if (/^include.*\.path$/.test(key) && isNamed)
      return [guardOr(resolve(dirname(origin), value), ['--ro-bind', '/dev/null'])];
    if (key === 'core.hookspath' && isNamed) return [guardOr(resolve(folder, value), ['--tmpfs'])];
    const words = EXECUTES.test(key) ? value.split(/[\s!"'();&|]+/).map((word) => resolve(folder, word)) : [];
    return [origin, ...words].filter((path) => findStats(path)?.isFile()).map(readOnly);
  });
  return guards.filter(([path]) => !isUnder(path, folder));
}

function guardOr(path: string, mount: readonly string[]): Guard {
  return exists(path) ? readOnly(path) : [path, ...mount, path, '--remount-ro', path];
}

/** Commands must not change the code of this process, of which parts are loaded later. */
function ownCode(workspace: string): string[] {
  const [folder = ''] = /^.*?\/node_modules(?=\/)/.exec(import.meta.dirname.slice(workspace.length)) ?? [];
  return isUnder(workspace, import.meta.dirname) && folder !== '' ? [workspace + folder] : [];
}

/** A mount cannot be moved, but a folder above it can. So folders above become mounts too. */
function mountGuards(workspace: string, guards: readonly Guard[]): string[] {
  const above = new Set<string>();
  for (const [path] of guards)
    for (let at = dirname(path); isUnder(workspace, dirname(at)); at = dirname(at)) above.add(at);
  const folders = [...above].sort().flatMap((path) => ['--bind-try', path, path]);
  // Sorted, a folder comes before what is in it.
  const sorted = [...guards].sort(([a], [b]) => (a < b ? -1 : 1));
  return [...folders, ...sorted.flatMap(([, ...mount]) => mount)];
}
