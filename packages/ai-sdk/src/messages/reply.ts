import type { LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { systemClock } from '@whoa/core/embed';
import { ModelError, type ModelPart } from '@whoa/core/model';
import { createTruncatedReplyError, modelErrorFrom } from '../errors.ts';
import { PartReader } from './parts.ts';

type Part = LanguageModelV4StreamPart;

export interface ReplyOptions {
  readonly model: string;
  /** Sends the request. The signal belongs to the reply. */
  readonly open: (signal: AbortSignal) => PromiseLike<{ readonly stream: ReadableStream<Part> }>;
  readonly signal: AbortSignal;
}

/**
 * One reply as it streams in. Don't make this a generator: a generator's `return()` waits for the pending read, which
 * on a silent connection never ends.
 *
 * The request runs under our own signal. So the connection closes with the reply however it ends, even where a provider
 * package forgets its streams after a failure, and no other code listens on the caller's signal.
 */
export class Reply implements AsyncIterableIterator<ModelPart, undefined> {
  readonly #options: ReplyOptions;
  readonly #reader: PartReader;
  readonly #connection = new AbortController();
  readonly #waiting: ModelPart[] = [];
  #stream: ReadableStreamDefaultReader<Part> | undefined;
  #interrupt: (() => void) | undefined;
  #isFinished = false;
  #isStopped = false;
  #isEnded = false;

  constructor(options: ReplyOptions) {
    this.#options = options;
    this.#reader = new PartReader(options.model);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<ModelPart, undefined>> {
    for (;;) {
      // Return what has been read, whatever happened since.
      const part = this.#waiting.shift();
      if (part !== undefined) return { done: false, value: part };
      if (this.#isStopped) this.#throwOnce();
      if (this.#isEnded) return { done: true, value: undefined };
      try {
        await this.#advance();
      } catch (error) {
        this.#end();
        if (this.#isFinished) continue;
        // Check the signal first: under a cancel, packages throw all kinds of errors.
        this.#throwOnce();
        throw error instanceof ModelError
          ? error
          : modelErrorFrom(error, { model: this.#options.model, hasContent: this.#reader.hasContent });
      }
    }
  }

  return(): Promise<IteratorResult<ModelPart, undefined>> {
    this.#waiting.length = 0;
    this.#isStopped = false;
    this.#end();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Reads one part of the stream, opening it first. */
  async #advance(): Promise<void> {
    this.#stream ??= await this.#opened();
    if (this.#stream === undefined) return;
    // A complete reply does not wait for a provider that leaves its connection open.
    const limit = this.#isFinished ? systemClock.setTimer(CLOSE_MS, () => this.#end()) : undefined;
    const read = await this.#unlessInterrupted(this.#stream.read()).finally(() => limit?.[Symbol.dispose]());
    if (read === undefined) return;
    if (read.done) {
      this.#end();
      if (!this.#isFinished) throw createTruncatedReplyError(this.#options.model);
      return;
    }
    this.#waiting.push(...this.#reader.read(read.value));
    this.#isFinished ||= read.value.type === 'finish';
  }

  async #opened(): Promise<ReadableStreamDefaultReader<Part> | undefined> {
    const { signal, open } = this.#options;
    signal.throwIfAborted();
    signal.addEventListener('abort', this.#stop, { once: true });
    const opening = (async () => (await open(this.#connection.signal)).stream.getReader())();
    const stream = await this.#unlessInterrupted(opening);
    // A package that ignores the signal may still return a stream that is no longer wanted.
    if (stream === undefined) opening.then(cancel, () => {});
    return stream;
  }

  /**
   * Waits for a promise; resolves with `undefined` if the reply ends first. Leaves no listeners on long-lived objects.
   */
  #unlessInterrupted<T>(work: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      this.#interrupt = () => resolve(undefined);
      work.then(resolve, reject);
    });
  }

  readonly #stop = (): void => {
    // A reply that is complete stays complete.
    this.#isStopped = !this.#isFinished;
    this.#end();
  };

  #throwOnce(): void {
    this.#isStopped = false;
    this.#options.signal.throwIfAborted();
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const { signal } = this.#options;
    signal.removeEventListener('abort', this.#stop);
    // Wake the reader first: otherwise it would queue behind everything that a broken stream triggers.
    this.#interrupt?.();
    this.#connection.abort(toAbortReason(signal));
    if (this.#stream !== undefined) cancel(this.#stream);
  }
}

/** How long a stream may stay open after a complete reply. */
const CLOSE_MS = 500;

const OVER = new DOMException('The reply is over', { name: 'AbortError' });

/** Packages treat any reason other than an `AbortError` as a failure. */
function toAbortReason({ aborted, reason }: AbortSignal): DOMException {
  if (!aborted) return OVER;
  if (reason instanceof DOMException && reason.name === 'AbortError') return reason;
  return new DOMException('The reply was stopped', { name: 'AbortError', cause: reason });
}

/** Cancels a stream. Don't wait for it: an unresponsive one never settles. */
function cancel(stream: ReadableStreamDefaultReader<Part>): void {
  stream.cancel().catch(() => {});
}
