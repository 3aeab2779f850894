import type { Readable, Writable } from 'node:stream';
import { MAX_FRAME_BYTES } from '../wire/frame.ts';
import { Lines, type SkippedLine } from '../wire/lines.ts';

/** How much may wait to be written before reading on the other side pauses. */
const MAX_QUEUED_BYTES = 4 * 1024 * 1024;

export interface PortHandlers {
  readonly onLine: (line: string) => void;
  readonly onSkipped: (line: SkippedLine) => void;
  /** Called once, when nothing more will be read. */
  readonly onEnd: () => void;
  /** Called when too much waits to be written, and when that is over. */
  readonly onFull: (isFull: boolean) => void;
}

/** One side of the proxy: lines in, lines out. */
export class Port {
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #onFull: (isFull: boolean) => void;
  readonly #pauses = new Set<string>();
  #isOver = false;
  #isFull = false;

  constructor(input: Readable, output: Writable, { onLine, onSkipped, onEnd, onFull }: PortHandlers) {
    this.#input = input;
    this.#output = output;
    this.#onFull = onFull;
    const lines = new Lines(MAX_FRAME_BYTES);
    const read = (found: Iterable<string | SkippedLine>): void => {
      for (const line of found) {
        if (this.#isOver) return;
        if (typeof line === 'string') onLine(line);
        else onSkipped(line);
      }
    };
    let hasEnded = false;
    const end = (): void => {
      if (hasEnded) return;
      hasEnded = true;
      read(lines.end());
      onEnd();
    };
    input.on('data', (chunk: Uint8Array) => read(lines.push(chunk)));
    for (const event of ['end', 'close', 'error']) input.on(event, end);
    for (const event of ['close', 'error']) output.on(event, end);
    output.on('drain', () => this.#setFull(false));
  }

  send(line: string): void {
    if (this.#isOver || !this.#output.writable) return;
    this.#output.write(`${line}\n`);
    if (this.#output.writableLength > MAX_QUEUED_BYTES) this.#setFull(true);
  }

  /** Pauses reading until the same reason is released. */
  pause(reason: string, isPaused: boolean): void {
    if (isPaused) this.#pauses.add(reason);
    else this.#pauses.delete(reason);
    if (this.#pauses.size > 0) this.#input.pause();
    else if (!this.#isOver) this.#input.resume();
  }

  /** Resolves when everything that was sent is written. */
  async flush(): Promise<void> {
    if (this.#output.writable) await new Promise((resolve) => this.#output.write('', resolve));
  }

  close(): void {
    this.#isOver = true;
    this.#input.destroy();
  }

  #setFull(isFull: boolean): void {
    if (this.#isFull === isFull) return;
    this.#isFull = isFull;
    this.#onFull(isFull);
  }
}
