import { randomUUID } from 'node:crypto';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** A command with endless output must not fill the disk. */
const MAX_LOG_BYTES = 1 << 30;

/** A file with the whole output, readable by this user only. Removed when disposed. */
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

  /** Why the log is incomplete, if it is. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Writes synchronously: a slow disk slows the command down instead of filling memory. A full disk ends the log. */
  write(chunk: Uint8Array): void {
    const end = Math.min(chunk.length, this.#maxBytes - this.#bytes);
    try {
      for (let at = 0; this.#descriptor !== undefined && at < end; ) {
        const written = writeSync(this.#descriptor, chunk, at, end - at);
        at += written;
        this.#bytes += written;
      }
      if (this.#descriptor !== undefined && end < chunk.length)
        this.#endWith(`it is limited to ${this.#maxBytes} bytes`);
    } catch (error) {
      this.#endWith((error as Error).message);
    }
  }

  #endWith(problem: string): void {
    this.#problem = problem;
    this.close();
  }

  /** Stops writing. The file stays. */
  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  [Symbol.dispose](): void {
    this.close();
    rmSync(this.path, { force: true });
  }
}
