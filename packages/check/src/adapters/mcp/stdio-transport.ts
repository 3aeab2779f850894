import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import type { StartedProcess } from '../agent-process.ts';
import { splitLines } from '../frames.ts';

/** Talks to a process that the kit started, and can send two messages in one piece. */
export class PieceTransport implements Transport {
  onclose?: () => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #process: StartedProcess;
  #held: string[] | undefined;
  #onHeld: (() => void) | undefined;

  constructor(process: StartedProcess) {
    this.#process = process;
  }

  start(): Promise<void> {
    const { stdout } = this.#process.child;
    const read = splitLines((frame) => this.onmessage?.(frame as unknown as JSONRPCMessage));
    stdout.on('data', read);
    stdout.once('close', () => this.onclose?.());
    return Promise.resolve();
  }

  send(message: JSONRPCMessage): Promise<void> {
    const line = `${JSON.stringify(message)}\n`;
    const held = [...(this.#held ?? []), line];
    const isFirst = this.#held?.length === 0;
    this.#held = isFirst ? held : undefined;
    if (isFirst) this.#onHeld?.();
    else this.#process.child.stdin.write(held.join(''));
    return Promise.resolve();
  }

  /** Sends the next two messages in one piece. `onFirst` is called when it has the first of them. */
  joinNextTwo(onFirst?: () => void): void {
    this.#held = [];
    this.#onHeld = onFirst;
  }

  async close(): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
  }
}
