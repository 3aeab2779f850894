import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { join } from 'node:path';

interface Changed {
  readonly file: string;
  readonly added: number;
  readonly removed: number;
}

/** The files of a folder, by where they were before: a Next route has moved, to take the other requests of a chat too. */
export const readFiles = (app: string, folder: string): ReadonlyMap<string, string> =>
  new Map(
    globSync('**/*.{json,ts,tsx}', { cwd: join(app, folder) }).map((file) => [
      file.replace('/[[...path]]', ''),
      join(folder, file),
    ]),
  );

/** Counts the lines that differ between the folders `before` and `after` of an application. New files are not counted. */
export function countChanges(app: string): readonly Changed[] {
  const after = readFiles(app, 'after');
  return [...readFiles(app, 'before')].map(([key, file]) => {
    const args = ['diff', '--no-index', '--numstat', '--', file, after.get(key) ?? '/dev/null'];
    const { stdout } = spawnSync('git', args, { cwd: app, encoding: 'utf8' });
    const [added = '0', removed = '0'] = stdout.split('\t');
    return { file: after.get(key) ?? file, added: Number(added), removed: Number(removed) };
  });
}

export const sum = (all: readonly Changed[], of: 'added' | 'removed'): number =>
  all.reduce((total, one) => total + one[of], 0);
