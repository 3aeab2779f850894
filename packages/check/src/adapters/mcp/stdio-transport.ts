import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import type { StartedProcess } from '../agent-process.ts';
import { PieceWriter, splitLines } from '../frames.ts';

/** Talks to a process that the kit started, and can send two messages in one piece. */
export class PieceTransport implements Transport {
  onclose?: () => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly writer: PieceWriter;
  readonly #process: StartedProcess;

  constructor(process: StartedProcess) {
    this.#process = process;
    this.writer = new PieceWriter((piece) => process.child.stdin.write(piece));
  }

  start(): Promise<void> {
    const { stdout } = this.#process.child;
    const read = splitLines((frame) => this.onmessage?.(frame as unknown as JSONRPCMessage));
    stdout.on('data', read);
    stdout.once('close', () => this.onclose?.());
    return Promise.resolve();
  }

  send(message: JSONRPCMessage): Promise<void> {
    this.writer.write(Buffer.from(`${JSON.stringify(message)}\n`));
    return Promise.resolve();
  }

  async close(): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
  }
}
