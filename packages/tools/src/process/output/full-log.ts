import { randomUUID } from 'node:crypto';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** A command that prints without end must not fill the disk. */
const MAX_LOG_BYTES = 1 << 30;

/** A file with everything that was printed, readable by this user only. It goes with whoever disposes it. */
export class FullLog implements Disposable {
  readonly path: string;
  readonly #maxBytes: number;
  #bytes = 0;
  #problem: string | undefined;
  #descriptor: number | undefined;

  constructor(folder: string, { maxBytes = MAX_LOG_BYTES }: { maxBytes?: number } = {}) {
    this.path = join(folder, `output-${randomUUID()}.log`);
    this.#maxBytes = maxBytes;
    this.#descriptor = openSync(this.path, 'wx', 0o600);
  }

  /** Why the log is not whole, if it is not. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Writes before it returns: a slow disk then slows the command down, and memory stays flat. A full one ends the log. */
  write(chunk: Uint8Array): void {
    const end = Math.min(chunk.length, this.#maxBytes - this.#bytes);
    try {
      for (let at = 0; this.#descriptor !== undefined && at < end; ) {
        const written = writeSync(this.#descriptor, chunk, at, end - at);
        at += written;
        this.#bytes += written;
      }
      if (this.#descriptor !== undefined && end < chunk.length)
        this.#endWith(`it holds ${this.#maxBytes} bytes at most`);
    } catch (error) {
      this.#endWith((error as Error).message);
    }
  }

  #endWith(problem: string): void {
    this.#problem = problem;
    this.close();
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
