import { join } from 'node:path';
import { CancelledError, createInterruptedError, type ToolContext } from '@whoa/core';
import { waitUntilLevel } from '@whoa/core/embed';
import { type ReplaceOptions, replaceFile } from './change/replace-file.ts';
import { notAFile, type ResolvedPath } from './path/resolved-path.ts';
import type { Root } from './path/root.ts';

/**
 * Where the text of files is if not on the disk: in an editor, say, with changes that nobody has saved. What it does not
 * offer is done on the disk. It is asked only about files that were found inside the root; their paths are absolute, and
 * every link below the root is resolved.
 */
export interface FileContents {
  /** `line`, from 1, and `limit` ask for some lines of it only. */
  readonly read?: (path: string, options: LineRange & { readonly signal: AbortSignal }) => Promise<string>;
  readonly write?: (path: string, text: string, options: { readonly signal: AbortSignal }) => Promise<void>;
}

export interface LineRange {
  readonly line?: number;
  readonly limit?: number;
}

/** A file in a call, and who may have its text. */
export interface FileInCall {
  readonly root: Root;
  readonly resolved: ResolvedPath;
  readonly contents: FileContents | undefined;
  readonly context: Pick<ToolContext, 'token' | 'signal' | 'shown'>;
}

/** The text as somebody other than the disk has it; `undefined` if nobody has. */
export async function readElsewhere(
  { root, resolved, contents, context }: FileInCall,
  range: LineRange = {},
): Promise<string | undefined> {
  if (contents?.read === undefined) return undefined;
  const { token, signal } = context;
  token.throwIfCancelled();
  const end = await waitUntilLevel(
    contents.read(join(root.path, resolved.shown), { ...range, signal }),
    token,
    'abort',
  );
  if (end.by === 'value') return end.value;
  if (end.by === 'error' && !token.isCancelled) throw end.error;
  throw new CancelledError(token.reason!);
}

/** Gives a file new content where its text is. */
export async function writeContent(
  file: FileInCall,
  text: string,
  { madeFrom }: Pick<ReplaceOptions, 'madeFrom'> = {},
): Promise<void> {
  const { root, resolved, contents, context } = file;
  const { token, signal } = context;
  if (contents?.write === undefined) return replaceFile(resolved, text, { token, ...(madeFrom && { madeFrom }) });
  if (resolved.kind === 'folder' || resolved.kind === 'other') throw notAFile(resolved.shown, resolved.kind);
  token.throwIfCancelled();
  const end = await waitUntilLevel(contents.write(join(root.path, resolved.shown), text, { signal }), token, 'abort');
  if (end.by === 'value') return;
  if (end.by === 'error' && !token.isCancelled) throw end.error;
  // Whoever was asked may have done it, or may do it yet.
  const details = { path: resolved.shown, changed: null };
  throw createInterruptedError(
    token,
    { content: `${resolved.shown} may have been changed.`, details },
    { effect: 'unknown' },
  );
}
