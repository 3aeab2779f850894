import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { CancellationToken } from '@whoa/core';
import type { CallPreview } from '@whoa/core/internal';
import { type FileInCall, readElsewhere } from '../contents.ts';
import { findErrorCode, notAFile, openToRead, type ResolvedPath } from '../path/resolved-path.ts';
import type { Root } from '../path/root.ts';
import { usingResource } from '../path/using-resource.ts';
import { decodeExactly } from '../text.ts';
import { FileChangedError } from './replace-file.ts';
import { createDiff } from './unified-diff.ts';

/** A file before a change. */
export interface FileBefore {
  /** `undefined` if it is too large to read, or not text. */
  readonly text: string | undefined;
  /** Identifies this state: a different text has a different state. */
  readonly state: string;
  readonly baseVersion: Stats | 'missing';
}

const MISSING: FileBefore = { text: '', state: 'missing', baseVersion: 'missing' };

/** Reads the file that a call will change, unless it is larger than `maxBytes`. */
export async function readBefore(asked: FileInCall, maxBytes: number): Promise<FileBefore> {
  const { resolved } = asked;
  if (resolved.kind === 'missing') return MISSING;
  if (resolved.kind !== 'file') throw notAFile(resolved.displayPath, resolved.kind);
  return usingResource(openToRead(resolved), async (file) => {
    const baseVersion = await file.stat();
    const { dev, ino, size, mtimeMs } = baseVersion;
    const onDisk = size > maxBytes ? undefined : decodeExactly(await file.readFile());
    const text = onDisk === undefined ? undefined : ((await readElsewhere(asked)) ?? onDisk);
    const state = text === undefined ? [dev, ino, size, mtimeMs].join(':') : sha256(text);
    return { text, state, baseVersion };
  });
}

/** Throws if the file or its content is no longer what the user saw when they approved the call. */
export function checkShown({ root, resolved, context }: FileInCall, { state }: FileBefore): void {
  const change = context.approvedPreview?.change;
  if (change === undefined || (change.baseVersion === state && change.path === join(root.path, resolved.displayPath)))
    return;
  throw new FileChangedError(
    `'${resolved.displayPath}' was changed after the change was shown to the user, so nothing was written; make the call again`,
  );
}

export interface PreviewOptions {
  readonly root: Root;
  readonly path: string;
  readonly contents: FileInCall['contents'];
  readonly maxBytes: number;
  /** The input fields that contain the change. */
  readonly fields: NonNullable<CallPreview['change']>['fields'];
  readonly signal: AbortSignal;
  /** Returns the new content. Throws if the change cannot be made. */
  readonly after: (before: string | undefined, resolved: ResolvedPath) => string;
}

/** Previews what a call would do to the current file. */
export async function previewChange(options: PreviewOptions): Promise<CallPreview> {
  const { root, path, contents, fields, signal, maxBytes, after } = options;
  const token = CancellationToken.from(signal, { name: 'preview' });
  try {
    return await usingResource(locate(root, path), async (resolved) => {
      const { text, state } = await readBefore({ root, resolved, contents, context: { token, signal } }, maxBytes);
      const content = after(text, resolved);
      const diff = text === undefined ? null : createDiff(resolved.displayPath, text, content).diff;
      const isNew = resolved.kind === 'missing';
      return { change: { path: join(root.path, resolved.displayPath), isNew, diff, fields, baseVersion: state } };
    });
  } finally {
    token[Symbol.dispose]();
  }
}

/** Like `root.locate`, but also works if folders are missing that the call would create. */
async function locate(root: Root, path: string): Promise<ResolvedPath> {
  try {
    return await root.locate(path);
  } catch (error) {
    if (findErrorCode(error) !== 'NOT_FOUND' || dirname(path) === path) throw error;
    const parent = await locate(root, dirname(path));
    return { ...parent, kind: 'missing', displayPath: join(parent.displayPath, basename(path)) };
  }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
