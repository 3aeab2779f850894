import type { Readable, Writable } from 'node:stream';

/** A JSON-RPC message as it is on the wire. */
export interface Frame {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: number; readonly message: string };
}

/** The two streams of a connection, with what passes through them in the order of the wire. */
export interface FrameTap {
  readonly writable: WritableStream<Uint8Array>;
  readonly readable: ReadableStream<Uint8Array>;
  /** Holds back what is written, until it is sent in one piece. */
  hold(): void;
  sendInOnePiece(): void;
}

interface Taps {
  readonly onSent: (frame: Frame) => void;
  readonly onReceived: (frame: Frame) => void;
}

/** Reads along with a client, which learns the order of messages and responses only after its own handlers. */
export function tapFrames(input: Writable, output: Readable, taps: Taps): FrameTap {
  let held: Uint8Array[] | undefined;
  const sent = splitLines(taps.onSent);
  const received = splitLines(taps.onReceived);
  const send = (chunk: Uint8Array): void => {
    sent(chunk);
    input.write(chunk);
  };
  return {
    writable: new WritableStream({
      write(chunk) {
        if (held === undefined) send(chunk);
        else held.push(chunk);
      },
    }),
    readable: new ReadableStream({
      start(controller) {
        output.on('data', (chunk: Buffer) => {
          received(chunk);
          controller.enqueue(new Uint8Array(chunk));
        });
        output.once('end', () => controller.close());
        output.once('error', (error) => controller.error(error));
      },
    }),
    hold() {
      held = [];
    },
    sendInOnePiece() {
      const chunks = held ?? [];
      held = undefined;
      send(Buffer.concat(chunks));
    },
  };
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
