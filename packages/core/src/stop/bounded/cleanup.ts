import type { Clock } from '../clock.ts';
import { shield } from '../token/shield.ts';
import { CancellationToken } from '../token/token.ts';
import { waitUntilLevel } from '../wait.ts';

/** A cleanup function. The signal fires when the time for cleanups is over. */
export type Cleanup = (context: { readonly signal: AbortSignal }) => unknown;

/** All cleanups of one piece of work share this limit. A cleanup that takes longer is reported and left alone. */
export const CLEANUP_MS = 2_000;

/** A cleanup that threw, rejected, or did not end in time. */
export class CleanupError extends Error {
  override readonly name: string = 'CleanupError';
  readonly code: string = 'CLEANUP_FAILED';
}

/** The cleanups of one piece of work. They run in reverse order, shielded from its cancel, with a time limit. */
export class Cleanups {
  #stack: Cleanup[] | undefined;
  readonly #work: { onCleanupError(error: CleanupError, running?: Promise<unknown>): void };
  #isClosed = false;

  constructor(work: { onCleanupError(error: CleanupError, running?: Promise<unknown>): void }) {
    this.#work = work;
  }

  /** Registers a cleanup. If abandoned work registers one after its end, the cleanup runs immediately. */
  readonly defer = (cleanup: Cleanup): void => {
    if (this.#isClosed) this.#attemptUnawaited(cleanup);
    else (this.#stack ??= []).push(cleanup);
  };

  /** Marks the work as ended. Returns whether there is anything to run. */
  close(): boolean {
    this.#isClosed = true;
    return this.#stack !== undefined;
  }

  /** Runs all cleanups. Those that fail or take too long are reported. */
  async run(token: CancellationToken, timeoutMs: number): Promise<void> {
    const stack = this.#stack!;
    const name = `cleanup of ${token.name}`;
    const shielded = shield(token, { timeoutMs, name });
    try {
      for (let cleanup = stack.pop(); cleanup !== undefined; cleanup = stack.pop()) {
        if (shielded.isCancelled) {
          this.#attemptUnawaited(cleanup);
          continue;
        }
        const attempt = this.#attempt(cleanup, shielded.signal);
        const end = await waitUntilLevel(attempt, shielded, 'kill');
        if (end.by === 'value') continue;
        if (end.by === 'error') this.#work.onCleanupError(end.error as CleanupError);
        else this.#work.onCleanupError(new CleanupError(`The ${name} did not end within ${timeoutMs} ms`), attempt);
      }
    } finally {
      shielded[Symbol.dispose]();
    }
  }

  async #attempt(cleanup: Cleanup, signal: AbortSignal): Promise<void> {
    try {
      await cleanup({ signal });
    } catch (error) {
      throw new CleanupError('A cleanup failed', { cause: error });
    }
  }

  #attemptUnawaited(cleanup: Cleanup): void {
    this.#attempt(cleanup, AbortSignal.abort()).catch((error: CleanupError) => this.#work.onCleanupError(error));
  }
}

/** Cleanups to run at the end, whatever happens. */
export interface CleanupList extends AsyncDisposable {
  /** Adds a cleanup. After the list was disposed, the cleanup runs immediately. */
  readonly defer: (cleanup: Cleanup) => void;
}

interface CleanupListOptions {
  /** The owner's name, for errors. */
  readonly name: string;
  /** Called with each cleanup error: one that threw or did not end in time. */
  readonly onError: (error: CleanupError) => void;
  /** How long all cleanups together may take. Defaults to 2 s. */
  readonly timeoutMs?: number | undefined;
  readonly clock?: Clock | undefined;
}

/**
 * Creates a list that runs its cleanups when it is disposed: the last one first, all within one time limit. A cleanup
 * that throws or hangs does not prevent the others from running. Disposing never throws.
 *
 * @returns The list.
 */
export function createCleanupList({ name, onError, timeoutMs = CLEANUP_MS, clock }: CleanupListOptions): CleanupList {
  const cleanups = new Cleanups({ onCleanupError: onError });
  return {
    defer: cleanups.defer,
    async [Symbol.asyncDispose]() {
      if (!cleanups.close()) return;
      const token = new CancellationToken({ name, ...(clock && { clock }) });
      await cleanups.run(token, timeoutMs);
      token[Symbol.dispose]();
    },
  };
}
