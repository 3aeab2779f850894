// Lets a project install packages of this clone from files. Until the release their names are not reserved on the registry:
// whoever takes them has code run by each `npm install` that asks for one.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Packed, pack } from './packed.ts';
import { findUnbuilt } from './stale-build.ts';

type Names = Record<string, string>;

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly dependencies?: Names;
  readonly overrides?: Names;
}

interface Lock {
  readonly packages: Record<string, { readonly resolved?: string } | undefined>;
}

/** Where the user started npm, which runs scripts in the root of the clone. */
export const fromCaller = (path: string): string => resolve(process.env['INIT_CWD'] ?? '.', path);

const root = join(import.meta.dirname, '..');
const readJson = <T>(...path: string[]): T => JSON.parse(readFileSync(join(...path), 'utf8')) as T;
const writeJson = (file: string, value: object): void => writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
const sorted = (names: Names): Names =>
  Object.fromEntries(Object.entries(names).toSorted(([a], [b]) => (a < b ? -1 : 1)));

const PUBLIC: ReadonlyMap<string, Manifest> = new Map(
  readdirSync(join(root, 'packages'))
    .map((folder) => readJson<Manifest>(root, 'packages', folder, 'package.json'))
    .filter((manifest) => manifest.private !== true)
    .map((manifest) => [manifest.name, manifest]),
);

/** The names that are not reserved on the registry yet. */
export const OUR_NAMES: readonly string[] = [...PUBLIC.keys()];

/** Returns the manifest with packages as files in its folder `whoa`, together with our packages that these need. */
export function withLocalPackages<T extends object>(manifest: T & Partial<Manifest>, names: readonly string[]): T {
  const needed = new Set<string>();
  const add = (name: string): void => {
    const found = PUBLIC.get(name);
    if (found === undefined) throw new Error(`${name} is not one of ${OUR_NAMES.join(', ')}`);
    needed.add(name);
    for (const dependency of Object.keys(found.dependencies ?? {}))
      if (PUBLIC.has(dependency) && !needed.has(dependency)) add(dependency);
  };
  for (const name of names) add(name);
  const files = Object.fromEntries([...needed].map((name) => [name, `file:whoa/${toFile(name)}`]));
  // Without these, npm asks the registry for what our packages need of one another.
  const references = Object.fromEntries([...needed].map((name) => [name, `$${name}`]));
  return {
    ...manifest,
    dependencies: sorted({ ...manifest.dependencies, ...files }),
    overrides: sorted({ ...manifest.overrides, ...references }),
  };
}

const toFile = (name: string): string => `${name.replace('@', '').replace('/', '-')}.tgz`;

/**
 * Packs packages of this clone into the folder `whoa` of a project, and writes them into its package.json: the named ones
 * and those that are there already, or all.
 */
export function addLocalPackages(project: string, named: readonly string[] = []): Packed {
  const unbuilt = findUnbuilt(root);
  if (unbuilt !== undefined) throw new Error(`${unbuilt} is newer than its build; run: npm run build`);
  const file = join(project, 'package.json');
  const before = existsSync(file) ? readJson<Manifest>(file) : { private: true, type: 'module' };
  const present = Object.keys((before as Manifest).dependencies ?? {}).filter((name) => PUBLIC.has(name));
  const all = [...present, ...named];
  const manifest = withLocalPackages(before as Manifest, all.length > 0 ? all : OUR_NAMES);
  const folder = join(project, 'whoa');
  mkdirSync(folder, { recursive: true });
  const packed = pack(folder, Object.keys(manifest.dependencies!));
  for (const [name, tarball] of packed.tarballs) renameSync(tarball, join(folder, toFile(name)));
  writeJson(file, manifest);
  forgetOlder(join(project, 'package-lock.json'));
  return packed;
}

/** The lock file has the hashes of the files that were packed before. */
function forgetOlder(file: string): void {
  if (!existsSync(file)) return;
  const lock = readJson<Lock>(file);
  for (const path of Object.keys(lock.packages)) if (isOurs(path)) delete lock.packages[path];
  writeJson(file, lock);
}

const isOurs = (path: string): boolean => OUR_NAMES.some((name) => path.endsWith(`node_modules/${name}`));

/** Fails if a lock file takes one of our packages from anywhere but a file. */
export function checkLock(file: string): void {
  const { packages } = readJson<Lock>(file);
  for (const [path, entry] of Object.entries(packages))
    if (isOurs(path) && entry?.resolved?.startsWith('file:whoa/') !== true)
      throw new Error(`${file} takes ${path} from ${entry?.resolved ?? 'a registry'}, where its name is not reserved`);
}
