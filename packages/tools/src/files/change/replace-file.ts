import {
  closeSync,
  constants,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  type Stats,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { type FileHandle, open, stat, unlink } from 'node:fs/promises';
import type { CancellationToken } from '@whoa/core';
import { findErrorCode, notAFile, type ResolvedPath } from '../path/resolved-path.ts';
import { createTempName, sweepTemps } from './temp-files.ts';

/** Written between two checks of the token. This bounds the delay of a cancel. */
const CHUNK_CHARS = 262_144;

export interface ReplaceOptions {
  /** The state of the file that the new content is based on. If the file has changed since, nothing is written. */
  readonly baseVersion?: Stats | 'missing';
  readonly token: CancellationToken;
}

/** Thrown when another process changed a file between reading and writing it. */
export class FileChangedError extends Error {
  override readonly name: string = 'FileChangedError';
  readonly code: string = 'FILE_CHANGED';
}

/**
 * Puts new content in the place of a file, whole or not at all: written next to it, synced, renamed over it (a file that is
 * a separate mount is overwritten instead). The rename is the commit: a cancel before it leaves the old file and nothing else, a cancel after it is too late. The mode and
 * the owner stay; other hard links keep the old content.
 */
export async function replaceFile(resolved: ResolvedPath, content: string, options: ReplaceOptions): Promise<void> {
  const { folder, name, displayPath, kind } = resolved;
  if (folder === undefined || name === undefined || kind === 'folder' || kind === 'other') {
    throw notAFile(displayPath, kind);
  }
  const { token } = options;
  token.throwIfCancelled();
  await sweepTemps(folder);
  const old = kind === 'file' ? await stat(resolved.target) : undefined;
  const temp = `${folder}/${createTempName()}`;
  try {
    await fill(temp, content, { old, token });
    commit({ temp, path: `${folder}/${name}`, shown: displayPath }, options);
  } catch (error) {
    await unlink(temp).catch(() => undefined);
    throw error;
  }
  await syncFolder(folder);
}

async function fill(
  temp: string,
  content: string,
  { old, token }: { old: Stats | undefined; token: CancellationToken },
): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const handle = await open(temp, flags, old === undefined ? 0o666 : 0o600);
  try {
    for (const chunk of splitChunks(content)) {
      token.throwIfCancelled();
      await handle.writeFile(chunk);
    }
    if (old !== undefined) await keepOwnerAndMode(handle, old);
    token.throwIfCancelled();
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Don't await in here: no cancel may come between the last check of the token and the rename. */
function commit(
  { temp, path, shown }: { temp: string; path: string; shown: string },
  { baseVersion, token }: ReplaceOptions,
): void {
  token.throwIfCancelled();
  if (baseVersion !== undefined && !isSame(baseVersion, statSync(path, { throwIfNoEntry: false }))) {
    const advice = 'read it again and repeat the edit';
    throw new FileChangedError(`'${shown}' was changed by another program in the meantime; ${advice}`);
  }
  try {
    renameSync(temp, path);
  } catch (error) {
    // A file that is its own mount, as in containers, cannot be replaced, only overwritten.
    if (findErrorCode(error) !== 'EBUSY') throw error;
    overwrite(path, temp);
  }
}

/** Don't await in here either. If the machine stops halfway, the temp file still has the whole content. */
function overwrite(path: string, temp: string): void {
  const content = readFileSync(temp);
  const file = openSync(path, constants.O_WRONLY | constants.O_NOFOLLOW);
  try {
    for (let written = 0; written < content.length; ) {
      written += writeSync(file, content, written, content.length - written, written);
    }
    ftruncateSync(file, content.length);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  unlinkSync(temp);
}

function isSame(before: Stats | 'missing', now: Stats | undefined): boolean {
  if (before === 'missing' || now === undefined) return before === 'missing' && now === undefined;
  return now.ino === before.ino && now.size === before.size && now.mtimeMs === before.mtimeMs;
}

async function keepOwnerAndMode(handle: FileHandle, old: Stats): Promise<void> {
  const mine = await handle.stat();
  // Only root may change the owner. For other users the new file is their own, as with every editor.
  if (mine.uid !== old.uid || mine.gid !== old.gid) await handle.chown(old.uid, old.gid).catch(() => undefined);
  await handle.chmod(old.mode & 0o7777);
}

/** Makes the rename durable. Ignore errors: some file systems cannot, and the new file is already in place. */
async function syncFolder(folder: string): Promise<void> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
    await handle.sync();
  } catch (error) {
    if (findErrorCode(error) === undefined) throw error;
  } finally {
    await handle?.close();
  }
}

function* splitChunks(content: string): Generator<string> {
  for (let start = 0; start < content.length; ) {
    let end = start + CHUNK_CHARS;
    // Never split a surrogate pair: each half would be written as U+FFFD.
    if (/[\uD800-\uDBFF]/.test(content.charAt(end - 1))) end++;
    yield content.slice(start, end);
    start = end;
  }
}
