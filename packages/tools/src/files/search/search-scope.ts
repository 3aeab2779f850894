import type { FileHandle } from 'node:fs/promises';
import { TEMP_GLOB } from '../change/temp-files.ts';
import { notAFile, openToRead, type ResolvedPath } from '../path/resolved-path.ts';
import type { Root } from '../path/root.ts';
import { usingResource } from '../path/using-resource.ts';
import { showName } from '../text.ts';

/** Arguments of every search. No configuration outside the root may change the results. */
export const SEARCH_ARGS: readonly string[] = [
  '--hidden',
  '--glob=!.git',
  `--glob=!${TEMP_GLOB}`,
  '--no-require-git',
  '--no-ignore-parent',
  '--no-ignore-global',
  '--no-ignore-exclude',
  '--no-follow',
];

/** Where a search looks. */
export interface SearchScope extends AsyncDisposable {
  readonly resolved: ResolvedPath;
  readonly cwd: string;
  /** Set when a single file is searched. */
  readonly file: FileHandle | undefined;
  /** Converts a name printed by ripgrep to a path relative to the searched folder. */
  fromHere(found: string): string;
  /** Converts it to a path relative to the root. */
  fromRoot(found: string): string;
}

export async function openSearchScope(root: Root, path: string): Promise<SearchScope> {
  const resolved = await root.locate(path);
  try {
    if (resolved.kind !== 'folder' && resolved.kind !== 'file') throw notAFile(path, resolved.kind);
    const isFile = resolved.kind === 'file';
    const file = isFile ? await openToRead(resolved) : undefined;
    const fromHere = (found: string): string =>
      isFile
        ? resolved.name!
        : (process.platform === 'win32' ? found.replaceAll('\\', '/') : found).replace(/^\.\//, '');
    const base = resolved.displayPath === '.' ? '' : `${resolved.displayPath}/`;
    return {
      resolved,
      cwd: isFile ? resolved.folder! : resolved.target,
      file,
      fromHere,
      fromRoot: (found) => (isFile ? resolved.displayPath : base + fromHere(found)),
      async [Symbol.asyncDispose]() {
        await file?.close();
        await resolved[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await resolved[Symbol.asyncDispose]();
    throw error;
  }
}

/** The kind of file at a path, if the path is inside the root. */
export async function kindInside(root: Root, path: string): Promise<ResolvedPath['kind'] | undefined> {
  try {
    return await usingResource(root.locate(path), (resolved) =>
      resolved.displayPath === path ? resolved.kind : undefined,
    );
  } catch {
    return undefined;
  }
}

/** The number of files that are listed by name. */
const MAX_NAMED = 100;

/**
 * Lists what could not be read, each with the reason: `folder: Permission denied`. A link made meanwhile can lead a search
 * outside, so names that do not resolve inside the root are not shown.
 */
export async function unreadInside(root: Root, stderrTail: readonly string[], scope: SearchScope): Promise<string[]> {
  const named = stderrTail.slice(0, MAX_NAMED).map(async (complaint) => {
    const path = scope.fromRoot(complaint.slice(0, complaint.lastIndexOf(': ')));
    const kind = await kindInside(root, path);
    return kind === undefined || kind === 'missing' ? 'something that is gone' : complaint;
  });
  return [...(await Promise.all(named)), ...stderrTail.slice(MAX_NAMED).map(() => 'something else')];
}

/** Describes for the model what was not searched. */
export function describeUnread([first, ...others]: readonly string[]): string {
  if (first === undefined) return '';
  return `not searched: ${showName(first)}${others.length > 0 ? ` and ${others.length} more` : ''}`;
}
