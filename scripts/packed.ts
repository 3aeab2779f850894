// The packages as a stranger gets them.
import { execFileSync } from 'node:child_process';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly private?: boolean;
  readonly exports: Record<string, unknown>;
}

export interface Packed {
  /** Files by the names of their packages. */
  readonly tarballs: ReadonlyMap<string, string>;
  /** Versions by the names of their packages. */
  readonly versions: ReadonlyMap<string, string>;
  /** Everything that can be imported. */
  readonly entries: readonly string[];
}

const root = join(import.meta.dirname, '..');
const packages = join(root, 'packages');

/** The peers that the entries for pages need. Other entries must work without them. */
export const PEERS_OF_PAGES: readonly string[] = ['ai', '@ai-sdk/react', 'react'];

/** The entries that need the peers that a page has. */
const FOR_PAGES: ReadonlySet<string> = new Set(['@whoa/server/client', '@whoa/server/transport']);

/** Returns the entries that need no peer. */
export const withoutPages = (entries: readonly string[]): string[] => entries.filter((entry) => !FOR_PAGES.has(entry));

/** It is a program: importing it would end the process before the other imports. */
const PROGRAM = '@whoa/tools/watchdog';

/** Packs public packages into a folder: all of them, or the named ones. */
export function pack(folder: string, only?: readonly string[]): Packed {
  const tarballs = new Map<string, string>();
  const versions = new Map<string, string>();
  const entries: string[] = [];
  for (const name of readdirSync(packages)) {
    const cwd = join(packages, name);
    const manifest = JSON.parse(readFileSync(join(cwd, 'package.json'), 'utf8')) as Manifest;
    if (manifest.private || only?.includes(manifest.name) === false) continue;
    checkSourceMaps(cwd);
    const args = ['pack', '--json', '--pack-destination', folder];
    const [packed] = JSON.parse(execFileSync('npm', args, { cwd, encoding: 'utf8' })) as {
      filename: string;
      size: number;
    }[];
    console.log(`${manifest.name}: ${Math.round(packed!.size / 1024)} KiB packed`);
    tarballs.set(manifest.name, join(folder, packed!.filename));
    versions.set(manifest.name, manifest.version);
    const paths = Object.keys(manifest.exports).filter((entry) => entry !== './package.json');
    entries.push(...paths.map((entry) => manifest.name + entry.slice(1)));
  }
  return { tarballs, versions, entries };
}

/** The sources are not packed, so a map is of use only if it holds them. */
function checkSourceMaps(folder: string): void {
  for (const file of globSync('dist/**/*.map', { cwd: folder })) {
    const { sourcesContent } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as { sourcesContent?: string[] };
    if (!sourcesContent?.[0])
      throw new Error(`${join(folder, file)} does not hold its source; remove dist and build again`);
  }
}

/** A program that imports all of them, and fails if one exports nothing. */
export function importAll(entries: readonly string[]): string {
  return entries
    .filter((entry) => entry !== PROGRAM)
    .map((entry) => `if (Object.keys(await import('${entry}')).length === 0) throw new Error('${entry} is empty');`)
    .join('\n');
}

/** The version in the lock file, so that two runs test the same version. */
export function toLocked(name: string): string {
  const { packages: locked } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock;
  return `${name}@${locked[`node_modules/${name}`]!.version}`;
}

type Lock = { packages: Record<string, { version: string }> };

/** The first program of the start page, as a new user would paste it. */
export function firstProgram(): string {
  const program = /```ts run\n([\s\S]*?)```/.exec(readFileSync(join(root, 'docs/start.md'), 'utf8'))?.[1];
  if (program === undefined) throw new Error('docs/start.md has no program');
  return program;
}
