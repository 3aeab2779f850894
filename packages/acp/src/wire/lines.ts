const NEWLINE = 0x0a;

/** Cuts a stream of bytes into lines. A line longer than the limit is skipped, and `undefined` stands in its place. */
export class Lines {
  readonly #bytesMax: number;
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #isSkipping = false;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  *push(chunk: Uint8Array): Generator<string | undefined> {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      this.#add(chunk.subarray(from, at));
      from = at + 1;
      yield this.#take();
    }
    this.#add(chunk.subarray(from));
  }

  /** What came after the last newline. */
  *end(): Generator<string | undefined> {
    if (this.#bytes > 0 || this.#isSkipping) yield this.#take();
  }

  #add(part: Uint8Array): void {
    if (this.#isSkipping || part.length === 0) return;
    this.#bytes += part.length;
    this.#parts.push(part);
    if (this.#bytes <= this.#bytesMax) return;
    this.#isSkipping = true;
    this.#parts = [];
  }

  #take(): string | undefined {
    const line = this.#isSkipping ? undefined : Buffer.concat(this.#parts).toString('utf8');
    this.#parts = [];
    this.#bytes = 0;
    this.#isSkipping = false;
    return line;
  }
}
