import { randomUUID } from 'node:crypto';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** A file with everything that was printed, readable by this user only. It goes with whoever disposes it. */
export class FullLog implements Disposable {
  readonly path: string;
  /** Why the log is not whole, if it is not. */
  error: Error | undefined;
  #descriptor: number | undefined;

  constructor(folder: string) {
    this.path = join(folder, `output-${randomUUID()}.log`);
    this.#descriptor = openSync(this.path, 'wx', 0o600);
  }

  /** Writes before it returns: a slow disk then slows the command down, and memory stays flat. A full one ends the log. */
  write(chunk: Uint8Array): void {
    try {
      for (let at = 0; this.#descriptor !== undefined && at < chunk.length; ) {
        at += writeSync(this.#descriptor, chunk, at);
      }
    } catch (error) {
      this.error = error as Error;
      this.close();
    }
  }

  /** No more is written; the file stays. */
  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  [Symbol.dispose](): void {
    this.close();
    rmSync(this.path, { force: true });
  }
}
