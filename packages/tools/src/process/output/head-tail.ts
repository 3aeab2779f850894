/** Keeps the beginning and the end of a stream of bytes, however long it is. */
export class HeadTail {
  readonly #head: Buffer;
  readonly #ring: Buffer;
  #headLength = 0;
  #ringLength = 0;
  #ringAt = 0;
  #bytes = 0;
  #lines = 0;

  constructor(options: { headBytes: number; tailBytes: number }) {
    this.#head = Buffer.allocUnsafe(options.headBytes);
    this.#ring = Buffer.allocUnsafe(options.tailBytes);
  }

  /** The number of bytes pushed. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The number of line ends pushed. */
  get lines(): number {
    return this.#lines;
  }

  /** Copies what it keeps, so the caller may reuse the chunk. */
  push(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    // Keep the plain loop: indexOf takes five times as long on short lines.
    for (let i = 0; i < chunk.length; i++) if (chunk[i] === NEWLINE) this.#lines++;
    const forHead = Math.min(chunk.length, this.#head.length - this.#headLength);
    this.#head.set(chunk.subarray(0, forHead), this.#headLength);
    this.#headLength += forHead;
    this.#pushToRing(chunk.subarray(Math.max(forHead, chunk.length - this.#ring.length)));
  }

  /** Returns whole characters, and whole lines where that costs little. */
  read(): { readonly head: string; readonly tail: string; readonly omittedBytes: number } {
    const tail = this.#unrolled();
    if (this.#headLength + tail.length === this.#bytes) {
      return {
        head: '',
        tail: decode(Buffer.concat([this.#head.subarray(0, this.#headLength), tail])),
        omittedBytes: 0,
      };
    }
    const first = cutEnd(this.#head.subarray(0, this.#headLength));
    const last = cutStart(tail);
    return { head: decode(first), tail: decode(last), omittedBytes: this.#bytes - first.length - last.length };
  }

  #pushToRing(chunk: Uint8Array): void {
    const untilEnd = Math.min(chunk.length, this.#ring.length - this.#ringAt);
    this.#ring.set(chunk.subarray(0, untilEnd), this.#ringAt);
    this.#ring.set(chunk.subarray(untilEnd), 0);
    this.#ringAt = this.#ring.length === 0 ? 0 : (this.#ringAt + chunk.length) % this.#ring.length;
    this.#ringLength = Math.min(this.#ring.length, this.#ringLength + chunk.length);
  }

  #unrolled(): Buffer {
    if (this.#ringLength < this.#ring.length) return this.#ring.subarray(0, this.#ringLength);
    return Buffer.concat([this.#ring.subarray(this.#ringAt), this.#ring.subarray(0, this.#ringAt)]);
  }
}

const NEWLINE = 10;

const utf8 = new TextDecoder();

/** Decodes UTF-8. Invalid bytes become U+FFFD; it never throws. */
function decode(bytes: Uint8Array): string {
  return utf8.decode(bytes);
}

function cutEnd(bytes: Buffer): Buffer {
  const newline = bytes.lastIndexOf(NEWLINE);
  if (newline > bytes.length / 2) return bytes.subarray(0, newline + 1);
  let start = bytes.length - 1;
  while (start >= 0 && start > bytes.length - 4 && isContinuation(bytes[start]!)) start--;
  return start >= 0 && start + lengthOfCharacter(bytes[start]!) > bytes.length ? bytes.subarray(0, start) : bytes;
}

function cutStart(bytes: Buffer): Buffer {
  const newline = bytes.indexOf(NEWLINE);
  if (newline >= 0 && newline < bytes.length / 2) return bytes.subarray(newline + 1);
  let start = 0;
  while (start < 3 && start < bytes.length && isContinuation(bytes[start]!)) start++;
  return bytes.subarray(start);
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

function lengthOfCharacter(first: number): number {
  if (first >= 0xf0) return 4;
  if (first >= 0xe0) return 3;
  return first >= 0xc0 ? 2 : 1;
}
