import { existsSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve } from 'node:path';
import { SettingsError } from '@whoa/core';
import { ExclusiveKeys } from '@whoa/core/internal';
import { isUnder } from '../../process/programs.ts';
import { walkChecked } from './checked-walk.ts';
import { pathInside, walkByDescriptor } from './descriptor-walk.ts';
import { outside, PathError, type ResolvedPath, type WalkOptions } from './resolved-path.ts';

/** A folder that tools are confined to. */
export interface Root {
  readonly path: string;
  /**
   * `held`: every step of a path is held by descriptor, so no rename or link made meanwhile leads outside. `checked`: the path
   * is resolved and then checked, which another process can race (systems other than Linux).
   */
  readonly confinement: 'held' | 'checked';
  /** Finds a path under the root, relative or absolute. Throws `PathError` if it leads outside. */
  locate(path: string, options?: WalkOptions): Promise<ResolvedPath>;
  /** Locks files: one writer at a time, whatever path it used. */
  readonly locks: ExclusiveKeys;
  /** The key that orders calls on a path given by a model. */
  getLockKey(path: string): string;
}

export interface RootOptions {
  /** Real paths of folders inside that tools cannot use. */
  readonly hidden?: readonly string[] | undefined;
  readonly confinement?: 'held' | 'checked' | undefined;
}

/**
 * Confines tools to a folder, which must exist.
 *
 * @returns The root to share between tools.
 * @throws {@link SettingsError} when there is no such folder; {@link PathError}, from its methods, when a path leads out of the folder.
 */
export function createRoot(path: string, options: RootOptions = {}): Root {
  if (path === '') throw new SettingsError('root', 'expected the path of a folder, got an empty text');
  const given = resolve(path);
  if (!existsSync(given)) throw new SettingsError('root', `there is no folder '${given}'; create it or name another`);
  const { confinement = canHold() ? 'held' : 'checked', hidden = [] } = options;
  const walk = confinement === 'held' ? walkByDescriptor : walkChecked;
  return {
    path: given,
    confinement,
    locks: new ExclusiveKeys(),
    getLockKey: (wanted) => `file:${resolve(given, wanted)}`,
    async locate(wanted, walkOptions) {
      if (wanted === '') throw new PathError('INVALID_PATH', 'the path is empty; use . for the root itself');
      if (wanted.includes('\0')) throw new PathError('INVALID_PATH', 'the path contains a NUL character; remove it');
      // The root itself may contain links: the developer chooses it, not the model.
      const real = await realpath(given).catch((error: unknown) => {
        throw new Error(`The root '${given}' cannot be used; create the folder or name another`, { cause: error });
      });
      const found = await walk(real, findRoot([given, real], wanted), walkOptions);
      if (!hidden.some((folder) => isUnder(folder, join(real, found.displayPath)))) return found;
      await found.removeCreated();
      await found[Symbol.asyncDispose]();
      throw outside(wanted);
    },
  };
}

/** Accepts a root or the path of one. */
export function rootFrom(root: string | Root): Root {
  return typeof root === 'string' ? createRoot(root) : root;
}

function findRoot(roots: readonly string[], wanted: string): string {
  if (!isAbsolute(wanted)) return wanted;
  for (const root of roots) {
    const inside = process.platform === 'win32' ? relative(root, wanted) : pathInside(root, wanted);
    if (inside !== undefined && !isAbsolute(inside)) return inside === '' ? '.' : inside;
  }
  throw outside(wanted);
}

function canHold(): boolean {
  return process.platform === 'linux' && existsSync('/proc/self/fd');
}
