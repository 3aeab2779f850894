/** A JSON-RPC message as it is on the wire. */
export interface Frame {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: number; readonly message: string };
}

/** Writes messages one by one, and can send two of them in one piece. */
export class PieceWriter {
  readonly #write: (piece: Uint8Array) => void;
  #held: Uint8Array[] | undefined;
  #onFirst: (() => void) | undefined;

  constructor(write: (piece: Uint8Array) => void) {
    this.#write = write;
  }

  write(message: Uint8Array): void {
    const held = [...(this.#held ?? []), message];
    const isFirst = this.#held?.length === 0;
    this.#held = isFirst ? held : undefined;
    if (isFirst) this.#onFirst?.();
    else this.#write(Buffer.concat(held));
  }

  /** Sends the next two messages in one piece. `onFirst` is called when it has the first of them. */
  joinNextTwo(onFirst?: () => void): void {
    this.#held = [];
    this.#onFirst = onFirst;
  }
}

/** Reads frames from pieces of a stream. Skips lines that are not JSON. */
export function splitLines(onFrame: (frame: Frame) => void): (chunk: Uint8Array) => void {
  let rest = '';
  const decoder = new TextDecoder();
  return (chunk) => {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      try {
        onFrame(JSON.parse(line) as Frame);
      } catch {
        // Not a message.
      }
    }
  };
}
