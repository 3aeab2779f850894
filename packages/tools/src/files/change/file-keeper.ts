import { createHash } from 'node:crypto';
import { mkdir, opendir, readdir, readFile, rename, rm, rmdir, stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTempName } from './temp-files.ts';

/** A larger file is not kept, so its change cannot be undone. */
const MAX_KEPT_BYTES = 1_000_000;
/** How much is kept for one task, and for how many calls. Then the oldest goes. */
const MAX_TASK_BYTES = 16_000_000;
const MAX_TASK_CALLS = 1_000;
/** What no one removed, because its process was killed, is removed after this time. */
const MAX_AGE_MS = 7 * 24 * 3_600_000;
const MAX_SWEPT = 2_000;
const DIGEST = /^[0-9a-f]{64}$/;

/** What a result says of a change that can be undone: digests only. */
export interface SavedChange {
  /** What the file was. */
  readonly before: string;
  /** What the call left. */
  readonly after: string;
}

/** The digest of a file that does not exist. */
export const MISSING = 'missing';

export function toDigest(text: string | undefined): string {
  return text === undefined ? MISSING : createHash('sha256').update(text).digest('hex');
}

/** A call and the file that it changes. */
export interface ChangingCall {
  readonly callId: string;
  readonly workId?: string | undefined;
  /** The absolute path. */
  readonly path: string;
}

/**
 * Removes the old contents that file tools kept for a task, when it has ended: nothing of it will be undone.
 *
 * @returns When they are gone.
 */
export async function removeOldContents(undoFolder: string, workId: string): Promise<void> {
  await rm(join(undoFolder, toFolder(workId)), { recursive: true, force: true });
}

/** Keeps what files were before calls changed them: a folder for a task, in it a file for a call. */
export class FileKeeper {
  readonly #folder: string;
  #opened: Promise<void> | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Keeps the old content before the file is changed. Returns `undefined` if it cannot be kept: the call cannot be undone, but it is
   * made. `before` is `undefined` for a file that does not exist.
   */
  async keep(call: ChangingCall, before: string | undefined, after: string): Promise<SavedChange | undefined> {
    const change = { before: toDigest(before), after: toDigest(after) };
    try {
      await (this.#opened ??= this.#open());
      const earlier = await this.#read(call);
      // A worker was killed after it had made this change, and the call runs again. What the file was before is not certain.
      if (earlier !== undefined && change.before === change.after && earlier.after === change.after) return undefined;
      if (before !== undefined && Buffer.byteLength(before) > MAX_KEPT_BYTES) return undefined;
      await this.#write(call, `${change.before} ${change.after}\n${before ?? ''}`);
      return change;
    } catch {
      // A full disk must not keep the agent from its work.
      return undefined;
    }
  }

  /** Returns the old content; `undefined` for a file that did not exist. Throws if it is not here. `named` is the path that the call gave. */
  async recall(call: ChangingCall, { before }: SavedChange, named: string): Promise<string | undefined> {
    if (before === MISSING) return undefined;
    const text = (await this.#read(call))?.text;
    if (text !== undefined && toDigest(text) === before) return text;
    const hasMoved = named !== call.path && (await this.#read({ ...call, path: named })) !== undefined;
    throw new Error(
      hasMoved
        ? 'changed since: the file was moved, and its path is now a link'
        : 'undo unavailable: the old content is not kept on this machine',
    );
  }

  async forget(call: ChangingCall): Promise<void> {
    await unlink(this.#toPath(call)).catch(() => undefined);
    // Only if it is empty.
    await rmdir(join(this.#folder, toFolder(call.workId))).catch(() => undefined);
  }

  #toPath(call: ChangingCall): string {
    return join(this.#folder, toFolder(call.workId), toFileName(call));
  }

  async #read(call: ChangingCall): Promise<(SavedChange & { readonly text: string }) | undefined> {
    const kept = await readFile(this.#toPath(call), 'utf8').catch(() => undefined);
    const end = kept?.indexOf('\n') ?? -1;
    if (kept === undefined || end === -1) return undefined;
    const [before = '', after = ''] = kept.slice(0, end).split(' ');
    return { before, after, text: kept.slice(end + 1) };
  }

  async #write(call: ChangingCall, text: string): Promise<void> {
    const folder = join(this.#folder, toFolder(call.workId));
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const temp = join(folder, createTempName());
    await writeFile(temp, text, { mode: 0o600, flush: true });
    await rename(temp, join(folder, toFileName(call)));
    // Read from the disk: other tools and other processes keep things for the same task.
    const kept = (await readKept(folder)).sort((a, b) => b.at - a.at);
    let total = 0;
    for (const [index, { path, size }] of kept.entries()) {
      total += size;
      if (total > MAX_TASK_BYTES || index >= MAX_TASK_CALLS) await unlink(path).catch(() => undefined);
    }
  }

  async #open(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    let entries = 0;
    for await (const { name } of await opendir(this.#folder)) {
      if (++entries > MAX_SWEPT) return;
      const path = join(this.#folder, name);
      const stats = await stat(path).catch(() => undefined);
      const isOld = stats !== undefined && Date.now() - stats.mtimeMs > MAX_AGE_MS;
      if (isOld) await rm(path, { recursive: true, force: true });
    }
  }
}

async function readKept(folder: string): Promise<{ path: string; size: number; at: number }[]> {
  const names = await readdir(folder);
  const kept = names.map(async (name) => {
    const path = join(folder, name);
    const stats = await stat(path).catch(() => undefined);
    return stats === undefined ? [] : [{ path, size: stats.size, at: stats.mtimeMs }];
  });
  return (await Promise.all(kept)).flat();
}

/** Reads what a result says of its change. It comes from a journal, so trust nothing. */
export function findKeptChange(details: unknown): SavedChange | undefined {
  const { undo } = (typeof details === 'object' && details !== null ? details : {}) as {
    undo?: Partial<SavedChange> | null;
  };
  const { before, after } = undo ?? {};
  if (typeof before !== 'string' || typeof after !== 'string') return undefined;
  return DIGEST.test(after) && (before === MISSING || DIGEST.test(before)) ? { before, after } : undefined;
}

/** Work inside a task is kept with the task. */
function toFolder(workId = ''): string {
  return toDigest(workId.split('/', 1)[0]).slice(0, 32);
}

function toFileName({ callId, path, workId = '' }: ChangingCall): string {
  return toDigest(`${workId}\n${callId}\n${path}`);
}
