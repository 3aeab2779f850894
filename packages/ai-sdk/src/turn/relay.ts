/** Partial results only show progress; a reader that falls behind misses the oldest. */
const MAX_SHOWN = 100;

/**
 * Passes on the partial results of a streaming tool until its call ends. It never makes the tool wait for its reader:
 * otherwise a tool that must finish could not, once its loop has stopped reading.
 *
 * Don't make this a generator: a generator starts to listen at its first `next()`, and a call that failed before that
 * would be an unhandled rejection.
 */
export class Relay implements AsyncIterableIterator<unknown, undefined> {
  readonly #shown: unknown[] = [];
  readonly #waiting: (() => void)[] = [];
  #failure: { readonly error: unknown } | undefined;
  #isOver = false;
  #hasReader = true;

  /** Passes on one value. Once the call has ended, ignores what its tool still emits. */
  show(value: unknown): void {
    if (this.#isOver || !this.#hasReader) return;
    if (this.#shown.push(value) > MAX_SHOWN) this.#shown.shift();
    this.#wake();
  }

  /** Yields partial results until the call has ended; then ends or throws as the call did. */
  until(ending: Promise<unknown>): this {
    const end = (): void => {
      this.#isOver = true;
      this.#wake();
    };
    ending.then(end, (error: unknown) => {
      this.#failure = { error };
      end();
    });
    return this;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<unknown, undefined>> {
    while (this.#shown.length === 0 && !this.#isOver && this.#hasReader)
      await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    if (this.#shown.length > 0) return { done: false, value: this.#shown.shift() };
    const failure = this.#failure;
    this.#failure = undefined;
    if (!this.#hasReader) return { done: true, value: undefined };
    // A tool may throw anything; rethrow it unchanged.
    if (failure !== undefined) await Promise.reject(failure.error as Error);
    return { done: true, value: undefined };
  }

  /** The reader stops; the tool and its call continue. */
  return(): Promise<IteratorResult<unknown, undefined>> {
    this.#shown.length = 0;
    this.#hasReader = false;
    this.#wake();
    return Promise.resolve({ done: true, value: undefined });
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
