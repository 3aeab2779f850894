import {
  CancelledError,
  createInterruptedError,
  isCancelledError,
  type ToolContext,
  type ToolResult,
} from '@whoa/core';
import { findErrorCode, type ResolvedPath } from '../path/resolved-path.ts';
import type { Root } from '../path/root.ts';
import { usingResource } from '../path/using-resource.ts';

interface LockedChange {
  readonly root: Root;
  readonly path: string;
  readonly create: boolean;
  readonly context: Pick<ToolContext, 'token' | 'callId' | 'defer'>;
}

/**
 * Lets one call change one file: finds it, waits for its lock, and cleans up. It waits for a killed call, within the cleanup
 * time, so that it makes no late changes.
 */
export async function changeUnderLock(
  locked: LockedChange,
  change: (resolved: ResolvedPath) => Promise<ToolResult>,
): Promise<ToolResult> {
  const { root, path, create, context } = locked;
  const { promise: left, resolve: leave } = Promise.withResolvers<void>();
  context.defer(() => left);
  try {
    context.token.throwIfCancelled();
    const release = await takeKey(locked);
    try {
      // Don't resolve the path before the lock: another call may have replaced the file while this one waited.
      return await usingResource(root.locate(path, { create }), (resolved) => changeOrUndo(resolved, change));
    } finally {
      release();
    }
  } catch (error) {
    if (!isCancelledError(error) || error.effect === 'unknown') throw error;
    const unchanged = { content: `${path} was not changed.`, details: { path, changed: false } };
    throw createInterruptedError(context.token, unchanged, { effect: 'none' });
  } finally {
    leave();
  }
}

async function changeOrUndo(
  resolved: ResolvedPath,
  change: (resolved: ResolvedPath) => Promise<ToolResult>,
): Promise<ToolResult> {
  try {
    return await change(resolved);
  } catch (error) {
    await resolved.removeCreated();
    throw error;
  }
}

async function takeKey({ root, path, context }: LockedChange): Promise<() => void> {
  const { token, callId } = context;
  const release = await root.locks.acquire([await keyAt(root, path)], { holder: callId, token });
  if (typeof release === 'function') return release;
  if (release === undefined) throw new CancelledError(token.reason!);
  throw new Error(`'${path}' is still being written by call '${release.heldBy}'; try again later`);
}

/** The same key for every path to one file. If folders are missing there can be no links, so use the path. */
async function keyAt(root: Root, path: string): Promise<string> {
  try {
    return await usingResource(root.locate(path), ({ key }) => key);
  } catch (error) {
    if (findErrorCode(error) === 'NOT_FOUND') return root.getLockKey(path);
    throw error;
  }
}
