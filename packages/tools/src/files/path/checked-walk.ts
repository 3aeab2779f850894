import { lstat, mkdir, readlink, realpath, rmdir, stat } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { isUnder } from '../../process/programs.ts';
import {
  findErrorCode,
  MAX_LINKS,
  notAFolder,
  notFound,
  outside,
  type ResolvedPath,
  tooManyLinks,
  type WalkOptions,
} from './resolved-path.ts';

/**
 * Resolves every link, then checks where the path ends. For systems without descriptors in `/proc`: it refuses every path that
 * leads outside at the time of the check, but another process that swaps a folder for a link between check and use can win
 * that race. Plain Node cannot prevent it there.
 */
export async function walkChecked(
  root: string,
  path: string,
  { create = false }: WalkOptions = {},
): Promise<ResolvedPath> {
  let wanted = resolve(root, path);
  const created: string[] = [];
  for (let links = 0; ; links++) {
    if (links > MAX_LINKS) throw tooManyLinks(path);
    const folder = await realFolder(root, dirname(wanted), { path, create, created });
    if (!isUnder(root, wanted === root ? root : folder)) throw outside(path);
    const target = wanted === root ? root : join(folder, wanted.slice(dirname(wanted).length).replace(/^[\\/]/, ''));
    const stats = await statIfExists(target);
    if (stats?.isSymbolicLink()) {
      wanted = resolve(folder, await readlink(target));
      continue;
    }
    const kind =
      stats === undefined ? 'missing' : stats.isFile() ? 'file' : stats.isDirectory() ? 'folder' : ('other' as const);
    return createResolvedPath({ root, target, kind, created });
  }
}

interface Found {
  readonly root: string;
  readonly target: string;
  readonly kind: ResolvedPath['kind'];
  readonly created: string[];
}

function createResolvedPath({ root, target, kind, created }: Found): ResolvedPath {
  const isRoot = target === root;
  return {
    displayPath: relative(root, target).split(sep).join('/') || '.',
    kind,
    folder: isRoot ? undefined : dirname(target),
    name: isRoot ? undefined : target.slice(dirname(target).length).replace(/^[\\/]/, ''),
    target,
    key: target,
    removeCreated: async () => {
      for (const folder of created.reverse()) await rmdir(folder).catch(() => undefined);
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** Returns the real path of the folder. Missing folders are created one by one, each inside a resolved one. */
async function realFolder(
  root: string,
  folder: string,
  options: { path: string; create: boolean; created: string[] },
): Promise<string> {
  const { path, create, created } = options;
  try {
    const real = await realpath(folder);
    if (!(await stat(real)).isDirectory()) throw notAFolder(path);
    return real;
  } catch (error) {
    const code = findErrorCode(error);
    if (code === 'ENOTDIR') throw notAFolder(path);
    if (code === 'ELOOP') throw tooManyLinks(path);
    if (code !== 'ENOENT') throw error;
    if (!isUnder(root, folder)) throw outside(path);
    if (!create || dirname(folder) === folder) throw notFound(path);
    const above = await realFolder(root, dirname(folder), options);
    if (!isUnder(root, above)) throw outside(path);
    const made = join(above, folder.slice(dirname(folder).length));
    await mkdir(made);
    created.push(made);
    return made;
  }
}

async function statIfExists(path: string): Promise<Awaited<ReturnType<typeof lstat>> | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (findErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}
