import { type Stats, statSync, unlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { CancellationToken, type ToolResult } from '@whoa/core';
import { type FileContents, writeContent } from '../contents.ts';
import type { ResolvedPath } from '../path/resolved-path.ts';
import type { Root } from '../path/root.ts';
import { readBefore } from './change.ts';
import { type FileKeeper, findKeptChange, MISSING, toDigest } from './file-keeper.ts';
import { changeUnderLock } from './file-lock.ts';

/** A file that grew beyond this is not what a call left. */
const MAX_READ_BYTES = 64_000_000;

interface UndoableTool {
  readonly root: Root;
  readonly contents: FileContents | undefined;
  readonly keeper: FileKeeper;
}

type FinishedCall = ToolResult & { readonly input: { readonly path: string } };

/**
 * Puts back what a file was before a call, if it is still what the call left. Otherwise it is untouched, and the error says why.
 * Doing it twice is doing it once.
 */
export async function undoChange(
  { root, contents, keeper }: UndoableTool,
  { input: { path }, details }: FinishedCall,
  {
    callId,
    workId,
    signal,
  }: { readonly callId: string; readonly workId?: string | undefined; readonly signal: AbortSignal },
): Promise<void> {
  const change = findKeptChange(details);
  if (change === undefined) throw new Error('undo unavailable: the old content was not kept');
  const token = CancellationToken.from(signal, { name: 'undo' });
  const context = { token, signal, callId, defer: () => {} };
  try {
    await changeUnderLock({ root, path, create: false, context }, async (resolved) => {
      const call = { callId, workId, path: join(root.path, resolved.displayPath) };
      const file = { root, resolved, contents, context };
      const now = await readBefore(file, MAX_READ_BYTES);
      const digest = resolved.kind === 'missing' ? MISSING : now.text === undefined ? '' : toDigest(now.text);
      if (digest !== change.before) {
        if (digest !== change.after)
          throw new Error(`changed since: '${resolved.displayPath}' no longer has the content that the call wrote`);
        const old = await keeper.recall(call, change, resolve(root.path, path));
        if (old === undefined) remove(resolved, now.baseVersion);
        else await writeContent(file, old, { baseVersion: now.baseVersion });
      }
      await keeper.forget(call);
      return { content: '' };
    });
  } finally {
    token[Symbol.dispose]();
  }
}

/** Don't await in here: nothing of ours may change the file between the look and the removal. */
function remove({ folder, name, displayPath }: ResolvedPath, seen: Stats | 'missing'): void {
  const path = `${folder}/${name}`;
  const now = statSync(path, { throwIfNoEntry: false });
  if (seen === 'missing' || now?.ino !== seen.ino || now.mtimeMs !== seen.mtimeMs)
    throw new Error(`changed since: '${displayPath}' no longer has the content that the call wrote`);
  unlinkSync(path);
}
