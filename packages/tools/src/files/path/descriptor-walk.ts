import { constants, type Stats } from 'node:fs';
import { type FileHandle, mkdir, open, readlink, rmdir } from 'node:fs/promises';
import {
  findErrorCode,
  MAX_LINKS,
  MAX_STEPS,
  notAFolder,
  notFound,
  outside,
  type ResolvedPath,
  tooDeep,
  tooManyLinks,
  type WalkOptions,
} from './resolved-path.ts';

// Node does not name O_PATH. The value is the same on every architecture Node runs on.
const O_PATH = 0o10000000;
const STEP = O_PATH | constants.O_NOFOLLOW;

interface Step {
  readonly handle: FileHandle;
  readonly name: string;
}

/** The path of an open descriptor. It refers to the open file itself, whatever its name is now. */
const toDescriptorPath = ({ fd }: FileHandle): string => `/proc/self/fd/${fd}`;

/**
 * Walks to a path one name at a time, opening each inside the folder that is already held and never through a symbolic link.
 * Links are read and walked the same way, and `..` goes back to the previous folder. So no rename or link that another
 * process makes meanwhile can lead outside. Linux only.
 */
export async function walkByDescriptor(root: string, path: string, options: WalkOptions = {}): Promise<ResolvedPath> {
  const walk = new DescriptorWalk(root, path, options);
  try {
    return await walk.go();
  } catch (error) {
    await walk.removeCreated();
    await walk.close();
    throw error;
  }
}

class DescriptorWalk {
  readonly #root: string;
  readonly #path: string;
  readonly #create: boolean;
  readonly #rest: string[];
  /** The folders from the root to here. */
  readonly #steps: Step[] = [];
  /** Folders left by `..`. Keep them open to the end: a descriptor number in a path must never refer to another folder. */
  readonly #behind: Step[] = [];
  readonly #created: string[] = [];
  #last: (Step & { readonly kind: 'file' | 'other' }) | undefined;
  #missing: string | undefined;
  #links = 0;

  constructor(root: string, path: string, { create = false }: WalkOptions) {
    this.#root = root;
    this.#path = path;
    this.#create = create;
    this.#rest = splitNames(path).reverse();
  }

  async go(): Promise<ResolvedPath> {
    this.#steps.push({ handle: await open(this.#root, STEP | constants.O_DIRECTORY), name: '' });
    for (let name = this.#rest.pop(); name !== undefined; name = this.#rest.pop()) {
      if (this.#steps.length + this.#behind.length > MAX_STEPS) throw tooDeep(this.#path);
      if (name === '..') this.#back();
      else await this.#enter(name);
    }
    return this.#arrive();
  }

  async close(): Promise<void> {
    const held = [...this.#steps.splice(0), ...this.#behind.splice(0), ...(this.#last ? [this.#last] : [])];
    this.#last = undefined;
    await Promise.all(held.map(({ handle }) => handle.close()));
  }

  async removeCreated(): Promise<void> {
    for (const created of this.#created.splice(0).reverse()) await rmdir(created).catch(() => undefined);
  }

  #back(): void {
    if (this.#steps.length === 1) throw outside(this.#path);
    this.#behind.push(this.#steps.pop()!);
  }

  async #enter(name: string): Promise<void> {
    const here = `${toDescriptorPath(this.#steps.at(-1)!.handle)}/${name}`;
    let handle = await openStep(here);
    if (handle === undefined && this.#create && this.#rest.length > 0) {
      await this.#createFolder(here);
      handle = await openStep(here);
    }
    if (handle === undefined) {
      if (this.#rest.length > 0) throw notFound(this.#path);
      this.#missing = name;
      return;
    }
    await this.#take(handle, name, here);
  }

  async #take(handle: FileHandle, name: string, here: string): Promise<void> {
    let stats: Stats;
    try {
      stats = await handle.stat();
    } catch (error) {
      await handle.close();
      throw error;
    }
    if (stats.isDirectory()) {
      this.#steps.push({ handle, name });
      return;
    }
    if (!stats.isSymbolicLink()) {
      this.#last = { handle, name, kind: stats.isFile() ? 'file' : 'other' };
      if (this.#rest.length > 0) throw notAFolder(this.#path);
      return;
    }
    await handle.close();
    await this.#follow(here);
  }

  async #follow(here: string): Promise<void> {
    if (++this.#links > MAX_LINKS) throw tooManyLinks(this.#path);
    const target = await readlink(here);
    if (target.startsWith('/')) {
      const inside = pathInside(this.#root, target);
      if (inside === undefined) throw outside(this.#path);
      while (this.#steps.length > 1) this.#back();
      this.#rest.push(...splitNames(inside).reverse());
    } else this.#rest.push(...splitNames(target).reverse());
  }

  async #createFolder(here: string): Promise<void> {
    try {
      await mkdir(here);
      this.#created.push(here);
    } catch (error) {
      if (findErrorCode(error) !== 'EEXIST') throw error;
    }
  }

  async #arrive(): Promise<ResolvedPath> {
    const top = this.#steps.at(-1)!;
    const isFolder = this.#last === undefined && this.#missing === undefined;
    const parent = isFolder ? this.#steps.at(-2) : top;
    const name = isFolder ? parent && top.name : (this.#last?.name ?? this.#missing);
    const folder = parent && toDescriptorPath(parent.handle);
    const { dev, ino } = await (parent ?? top).handle.stat({ bigint: true });
    const names = this.#steps.slice(1).map((step) => step.name);
    if (!isFolder) names.push(name!);
    return {
      displayPath: names.join('/') || '.',
      kind: isFolder ? 'folder' : (this.#last?.kind ?? 'missing'),
      folder,
      name,
      target: this.#missing === undefined ? toDescriptorPath((this.#last ?? top).handle) : `${folder}/${name}`,
      key: `${dev}:${ino}/${name ?? ''}`,
      removeCreated: () => this.removeCreated(),
      [Symbol.asyncDispose]: () => this.close(),
    };
  }
}

async function openStep(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, STEP);
  } catch (error) {
    if (findErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** The rest of an absolute path under a root, compared name by name; `undefined` if it is not under it. */
export function pathInside(root: string, path: string): string | undefined {
  const wanted = splitNames(path);
  const inside = splitNames(root).every((name, index) => wanted[index] === name);
  return inside ? wanted.slice(splitNames(root).length).join('/') : undefined;
}

function splitNames(path: string): string[] {
  return path.split('/').filter((name) => name !== '' && name !== '.');
}
