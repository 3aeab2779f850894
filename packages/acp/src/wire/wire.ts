import type { Readable, Writable } from 'node:stream';
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk';
import type { Clock } from '@whoa/core/embed';
import {
  answeredId,
  type Frame,
  type FrameId,
  MAX_FRAME_BYTES,
  readFrame,
  refusal,
  refuseLength,
  TOO_LONG,
} from './frame.ts';
import { Lines, type SkippedLine } from './lines.ts';

/**
 * Sees every message in the order of the wire: incoming ones before they are handled, outgoing ones when they are
 * written.
 */
export interface WireTap {
  /** A message arrived. Returns `false` if it must not be handled. */
  received(message: AnyMessage): boolean;
  /** A message is being sent. */
  sent(message: AnyMessage): void;
}

export interface WireOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** Called when a message could not be written. */
  readonly onError: (error: unknown) => void;
}

/** How many messages are kept before the wire is opened. Then reading pauses. */
const MAX_HELD = 256;

/**
 * Messages over a pair of byte streams, one per line. Only messages are written. Messages that arrive before it is
 * opened are held, in order.
 */
export class Wire {
  /** Resolves when no more messages will arrive, with an error if the streams broke. */
  readonly over: Promise<{ readonly error?: Error }>;
  readonly stream: Stream;
  /** The first message; `undefined` if none ever arrives. */
  readonly first: Promise<AnyMessage | undefined>;
  readonly #options: WireOptions;
  readonly #asked = new Set<FrameId>();
  readonly #held: AnyMessage[] = [];
  #isHolding = true;
  /** Replaces the id of a request that was answered here. */
  #answeredId: string | undefined;
  #tap: WireTap | undefined;
  readonly #end = Promise.withResolvers<{ error?: Error }>();
  readonly #first = Promise.withResolvers<AnyMessage | undefined>();
  #reader: ReadableStreamDefaultController<AnyMessage> | undefined;
  #isOver = false;
  #unwritten = 0;
  #written = 0;
  #onWritten: () => void = () => {};

  constructor(options: WireOptions) {
    this.#options = options;
    this.over = this.#end.promise;
    this.first = this.#first.promise;
    this.stream = {
      readable: new ReadableStream<AnyMessage>({
        start: (controller) => {
          this.#reader = controller;
        },
      }),
      writable: new WritableStream<AnyMessage>({ write: (message) => this.#write(message) }),
    };
    this.#listen();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Responds to the first message, a request, before the library does. The library's own response is not sent. */
  async answerFirst({ id }: { readonly id: FrameId }, result: unknown): Promise<void> {
    this.#answeredId = crypto.randomUUID();
    this.#held[0] = { ...this.#held[0]!, id: this.#answeredId } as AnyMessage;
    await new Promise<void>((resolve) => this.#put({ jsonrpc: '2.0', id, result }, resolve));
  }

  /** Starts to pass messages on. */
  open(tap: WireTap): void {
    this.#tap = tap;
    if (this.#answeredId === undefined) this.#release();
    // Its handler must have responded before the next message arrives, as with any client that waits for responses.
    else this.#handle(this.#held.shift()!);
  }

  /** Stops reading and writing. No other code uses the streams, so the input is destroyed. */
  close(error?: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    try {
      this.#reader?.close();
    } catch {
      // Other code closed it first.
    }
    this.#first.resolve(undefined);
    this.#onWritten();
    this.#options.input.destroy();
    this.#end.resolve(error === undefined ? {} : { error });
  }

  /** Resolves when everything has been written, or nothing more can be. */
  async drained(): Promise<void> {
    while (this.#unwritten > 0 && !this.#isOver) {
      await new Promise<void>((resolve) => {
        this.#onWritten = resolve;
      });
    }
  }

  /** Closes if the other side reads nothing for `ms` while something is waiting to be written. */
  closeWhenStuck(ms: number, clock: Clock): Disposable {
    let written = this.#written;
    let timer: Disposable;
    const checkProgress = (): void => {
      if (this.#unwritten > 0 && this.#written === written) this.close(new Error('The client stopped reading'));
      written = this.#written;
      timer = clock.setTimer(ms, checkProgress);
    };
    timer = clock.setTimer(ms, checkProgress);
    return { [Symbol.dispose]: () => timer[Symbol.dispose]() };
  }

  #listen(): void {
    const { input, output } = this.#options;
    const lines = new Lines(MAX_FRAME_BYTES);
    input.on('data', (chunk: Uint8Array) => {
      for (const line of lines.push(chunk)) this.#read(line);
    });
    input.once('end', () => {
      for (const line of lines.end()) this.#read(line);
      this.close();
    });
    input.once('close', () => this.close());
    input.on('error', (error: Error) => this.close(error));
    output.once('close', () => this.close());
    output.on('error', (error: Error) => this.close(error));
  }

  #read(line: string | SkippedLine): void {
    if (this.#isOver) return;
    const frame = typeof line === 'string' ? readFrame(line) : this.#readSkipped(line);
    if (frame.type === 'refusal') this.#put(frame.answer, () => {});
    if (frame.type !== 'message') return;
    const { message } = frame;
    // Drop a response without a request: the SDK would print an error to stderr, which clients may not read.
    if (!('method' in message) && !this.#asked.delete(message.id)) return;
    if (!this.#isHolding) {
      this.#handle(message);
      return;
    }
    this.#held.push(message);
    if (this.#held.length >= MAX_HELD) this.#options.input.pause();
    this.#first.resolve(message);
  }

  /**
   * A response that is too long is still a response: the code that waits for it must learn that there will be no other.
   */
  #readSkipped({ head }: SkippedLine): Frame {
    const id = answeredId(head);
    if (id === undefined || !this.#asked.has(id)) return { type: 'refusal', answer: refuseLength() };
    return { type: 'message', message: refusal(id, { code: -32603, message: TOO_LONG }) };
  }

  #release(): void {
    this.#isHolding = false;
    for (const message of this.#held.splice(0)) this.#handle(message);
    if (!this.#isOver) this.#options.input.resume();
  }

  #handle(message: AnyMessage): void {
    if (this.#tap?.received(message)) this.#reader?.enqueue(message);
  }

  async #write(message: AnyMessage): Promise<void> {
    if (this.#isOver) throw new Error('The connection is closed');
    if (!('method' in message) && message.id === this.#answeredId) return this.#release();
    if ('method' in message && 'id' in message) this.#asked.add(message.id);
    const written = Promise.withResolvers<void>();
    this.#put(message, written.resolve);
    this.#tap?.sent(message);
    await written.promise;
  }

  #put(message: AnyMessage, done: () => void): void {
    const text = this.#encode(message);
    if (text === undefined || this.#isOver) {
      done();
      return;
    }
    this.#unwritten++;
    // The stream's own error event reports a failed write and ends the wire.
    this.#options.output.write(`${text}\n`, () => {
      this.#unwritten--;
      this.#written++;
      this.#onWritten();
      done();
    });
  }

  /** A value that is not JSON must not end the connection: it comes from a tool. */
  #encode(message: AnyMessage): string | undefined {
    try {
      return JSON.stringify(message);
    } catch (error) {
      this.#options.onError(error);
      const isAnswer = 'id' in message && !('method' in message);
      const answer = { code: -32603, message: 'Internal error: the response could not be serialized as JSON' };
      return isAnswer ? JSON.stringify(refusal(message.id, answer)) : undefined;
    }
  }
}
