import type { FileHandle } from 'node:fs/promises';
import { notAFile, openToRead, type Place } from './place.ts';
import type { Root } from './root.ts';

/** What every search leaves out and how it behaves, so that nothing outside the root decides what is found. */
export const SEARCH_ARGS: readonly string[] = [
  '--hidden',
  '--glob=!.git',
  '--no-require-git',
  '--no-ignore-parent',
  '--no-ignore-global',
  '--no-ignore-exclude',
  '--no-follow',
];

/** Where a search looks. */
export interface SearchScope extends AsyncDisposable {
  readonly place: Place;
  readonly cwd: string;
  /** Set when a single file is searched. */
  readonly file: FileHandle | undefined;
  /** A name as the search gives it, as a path from the root. */
  fromRoot(found: string): string;
}

export async function openSearchScope(root: Root, path: string): Promise<SearchScope> {
  const place = await root.locate(path);
  try {
    if (place.kind !== 'folder' && place.kind !== 'file') throw notAFile(path, place.kind);
    const isFile = place.kind === 'file';
    const file = isFile ? await openToRead(place) : undefined;
    const base = place.shown === '.' ? '' : `${place.shown}/`;
    return {
      place,
      cwd: isFile ? place.folder! : place.target,
      file,
      fromRoot: (found) => (isFile ? place.shown : base + found.replaceAll('\\', '/').replace(/^\.\//, '')),
      async [Symbol.asyncDispose]() {
        await file?.close();
        await place[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await place[Symbol.asyncDispose]();
    throw error;
  }
}
