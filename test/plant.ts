import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** One edit of a planted bug. */
export interface Change {
  readonly file: string;
  /** A text that occurs once in the file. */
  readonly find: string;
  readonly replace: string;
}

/** Changes the sources in a folder. Throws when a text to change does not occur exactly once. */
export async function plant(changes: readonly Change[], folder: string): Promise<void> {
  for (const change of changes) {
    const path = join(folder, change.file);
    await writeFile(path, planted(await readFile(path, 'utf8'), change));
  }
}

/** A source with a change. */
export function planted(source: string, { file, find, replace }: Change): string {
  const pieces = source.split(find);
  if (pieces.length !== 2) throw new Error(`'${find}' stands ${pieces.length - 1} times in ${file}, not once`);
  return pieces.join(replace);
}
