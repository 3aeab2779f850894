/** What a tool shows on the way is a picture of how far it is; a reader that falls behind misses the oldest. */
const SHOWN_MAX = 100;

/**
 * Passes on what a streaming tool shows, until its call ends, whichever way. It never makes the tool wait for its reader:
 * a tool that must finish could not, once its loop has stopped reading.
 */
export class Relay {
  readonly #shown: unknown[] = [];
  #wake: (() => void) | undefined;
  #isOver = false;

  /** Takes everything out of a tool's stream. Resolves with the last thing: that is its result. */
  async drain(stream: AsyncIterable<unknown>): Promise<unknown> {
    let last: unknown;
    for await (const value of stream) {
      // The call is over and its tool speaks on: that reaches nobody.
      if (this.#isOver) break;
      last = value;
      if (this.#shown.push(value) > SHOWN_MAX) this.#shown.shift();
      this.#wake?.();
    }
    return last;
  }

  /** What is shown until the call has ended; then ends or throws as the call did. */
  async *until(ending: Promise<unknown>): AsyncGenerator<unknown, void> {
    let failure: { readonly error: unknown } | undefined;
    const end = (): void => {
      this.#isOver = true;
      this.#wake?.();
    };
    ending.then(end, (error: unknown) => {
      failure = { error };
      end();
    });
    for (;;) {
      while (this.#shown.length > 0) yield this.#shown.shift();
      if (this.#isOver) break;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    // A tool may throw anything; it goes on as it came.
    if (failure !== undefined) await Promise.reject(failure.error as Error);
  }
}
