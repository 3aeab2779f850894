import { join } from 'node:path';
import { CancelledError, createInterruptedError, type ToolContext } from '@whoa/core';
import { waitUntilLevel } from '@whoa/core/embed';
import { type ReplaceOptions, replaceFile } from './change/replace-file.ts';
import { notAFile, type ResolvedPath } from './path/resolved-path.ts';
import type { Root } from './path/root.ts';

/**
 * Reads and writes files elsewhere than on the disk: in an editor with unsaved changes, for example. Missing functions fall
 * back to the disk. It is called only for files inside the root, with absolute paths whose links below the root are resolved.
 */
export interface FileContents {
  /** `line`, from 1, and `limit` select some lines. */
  readonly read?: (path: string, options: LineRange & { readonly signal: AbortSignal }) => Promise<string>;
  readonly write?: (path: string, text: string, options: { readonly signal: AbortSignal }) => Promise<void>;
}

export interface LineRange {
  readonly line?: number;
  readonly limit?: number;
}

/** A file in a call, and where its text may be. */
export interface FileInCall {
  readonly root: Root;
  readonly resolved: ResolvedPath;
  readonly contents: FileContents | undefined;
  readonly context: Pick<ToolContext, 'token' | 'signal' | 'approvedPreview'>;
}

/** Reads the text from `contents`; `undefined` if it cannot read. */
export async function readElsewhere(
  { root, resolved, contents, context }: FileInCall,
  range: LineRange = {},
): Promise<string | undefined> {
  if (contents?.read === undefined) return undefined;
  const { token, signal } = context;
  token.throwIfCancelled();
  const end = await waitUntilLevel(
    contents.read(join(root.path, resolved.displayPath), { ...range, signal }),
    token,
    'abort',
  );
  if (end.by === 'value') return end.value;
  if (end.by === 'error' && !token.isCancelled) throw end.error;
  throw new CancelledError(token.reason!);
}

/** Writes new content through `contents`, otherwise to the disk. */
export async function writeContent(
  file: FileInCall,
  text: string,
  { baseVersion }: Pick<ReplaceOptions, 'baseVersion'> = {},
): Promise<void> {
  const { root, resolved, contents, context } = file;
  const { token, signal } = context;
  if (contents?.write === undefined) return replaceFile(resolved, text, { token, ...(baseVersion && { baseVersion }) });
  if (resolved.kind === 'folder' || resolved.kind === 'other') throw notAFile(resolved.displayPath, resolved.kind);
  token.throwIfCancelled();
  const end = await waitUntilLevel(
    contents.write(join(root.path, resolved.displayPath), text, { signal }),
    token,
    'abort',
  );
  if (end.by === 'value') return;
  if (end.by === 'error' && !token.isCancelled) throw end.error;
  // The editor may have written it already, or may still write it.
  const details = { path: resolved.displayPath, changed: null };
  throw createInterruptedError(
    token,
    { content: `${resolved.displayPath} may have been changed.`, details },
    { effect: 'unknown' },
  );
}
