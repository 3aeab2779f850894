import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Location, program, type Subject } from './subject.ts';

/** Outside of the workspace, and outside of the temporary folder: some agents refuse a home there. */
const CACHE = join(import.meta.dirname, '../../../.cache/others');

/** The original environment: subjects get few variables, and npm may need more, such as certificates. */
const ENV = { ...process.env };

/** Installs a subject in exactly its versions, unless it is there. Returns the folder. */
export function install({ name, packages, scripts = [] }: Subject): string {
  const folder = join(CACHE, name);
  if (Object.keys(packages).length === 0) return folder;
  const wanted = JSON.stringify({ private: true, dependencies: packages }, undefined, 2);
  const manifest = join(folder, 'package.json');
  const done = join(folder, 'installed');
  if (existsSync(done) && readFileSync(done, 'utf8') === wanted) return folder;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(manifest, wanted);
  npm(folder, ['install', '--ignore-scripts', '--no-audit', '--no-fund']);
  if (scripts.length > 0) npm(folder, ['rebuild', ...scripts]);
  writeFileSync(done, wanted);
  return folder;
}

function npm(cwd: string, args: readonly string[]): void {
  const { status, stderr } = spawnSync('npm', args, { cwd, env: ENV, encoding: 'utf8' });
  if (status !== 0)
    throw new Error(`npm ${args.join(' ')} failed in ${cwd}: ${stderr.trim().split('\n').slice(0, 3).join(' ')}`);
}

/** Makes an empty home for a subject and writes its files. */
export function settleIn(subject: Subject, { installed, provider }: Omit<Location, 'home'>): Location {
  const home = join(CACHE, 'preferred_workers', subject.name);
  rmSync(home, { recursive: true, force: true, maxRetries: 3 });
  mkdirSync(home, { recursive: true });
  const location: Location = { installed, home, provider };
  if (subject.program !== undefined) {
    const servers = join(import.meta.dirname, 'servers');
    copyFileSync(join(servers, subject.program), program(location));
    copyFileSync(join(servers, 'command.mjs'), join(installed, 'command.mjs'));
  }
  for (const [path, text] of Object.entries(subject.files?.(location) ?? {})) {
    const file = join(home, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  return location;
}

/** The installed version. */
export function installedVersion(folder: string, name: string): string {
  const text = readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
