const NEWLINE = 0x0a;

/** The beginning of a line that was too long. */
export interface SkippedLine {
  readonly head: string;
}

/** How many bytes of a line that is too long are kept. */
const HEAD_BYTES = 256;

/** Splits a stream of bytes into lines. Only the beginning of a line above the limit is kept. */
export class Lines {
  readonly #maxBytes: number;
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #isSkipping = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  *push(chunk: Uint8Array): Generator<string | SkippedLine> {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      this.#add(chunk.subarray(from, at));
      from = at + 1;
      yield this.#take();
    }
    this.#add(chunk.subarray(from));
  }

  /** Yields what came after the last newline. */
  *end(): Generator<string | SkippedLine> {
    if (this.#bytes > 0 || this.#isSkipping) yield this.#take();
  }

  #add(part: Uint8Array): void {
    if (this.#isSkipping || part.length === 0) return;
    this.#bytes += part.length;
    this.#parts.push(part);
    if (this.#bytes <= this.#maxBytes) return;
    this.#isSkipping = true;
    this.#parts = [Buffer.concat(this.#parts).subarray(0, HEAD_BYTES)];
  }

  #take(): string | SkippedLine {
    const text = Buffer.concat(this.#parts).toString('utf8');
    const line = this.#isSkipping ? { head: text } : text;
    this.#parts = [];
    this.#bytes = 0;
    this.#isSkipping = false;
    return line;
  }
}
