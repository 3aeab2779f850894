/** What a tool shows on the way is a picture of how far it is; a reader that falls behind misses the oldest. */
const MAX_SHOWN = 100;

/**
 * Passes on what a streaming tool shows, until its call ends, whichever way. It never makes the tool wait for its reader:
 * a tool that must finish could not, once its loop has stopped reading.
 *
 * Written by hand and not as a generator: a generator begins to listen at its first `next()`, and a call that failed before
 * would be a rejection that no one handles.
 */
export class Relay implements AsyncIterableIterator<unknown, undefined> {
  readonly #shown: unknown[] = [];
  readonly #waiting: (() => void)[] = [];
  #failure: { readonly error: unknown } | undefined;
  #isOver = false;
  #hasReader = true;

  /** Takes everything out of a tool's stream. Resolves with the last thing: that is its result. */
  async drain(stream: AsyncIterable<unknown>): Promise<unknown> {
    let last: unknown;
    for await (const value of stream) {
      // The call is over and its tool speaks on: that reaches no one.
      if (this.#isOver) break;
      last = value;
      if (!this.#hasReader) continue;
      if (this.#shown.push(value) > MAX_SHOWN) this.#shown.shift();
      this.#wake();
    }
    return last;
  }

  /** Shows what there is until the call has ended; then ends or throws as the call did. */
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
    // A tool may throw anything; it goes on as it came.
    if (failure !== undefined) await Promise.reject(failure.error as Error);
    return { done: true, value: undefined };
  }

  /** The reader leaves; the tool goes on and its call ends as it would. */
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
