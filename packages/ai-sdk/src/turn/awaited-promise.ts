/* oxlint-disable unicorn/no-thenable -- it is a promise */
/**
 * A promise that reports when it is awaited. Don't extend `Promise`: `await` bypasses the methods of native promises.
 * It waits a moment before it reports: code that passes the promise on synchronously, before the loop starts, means the
 * end of the turn.
 */
export class AwaitedPromise<T> implements Promise<T> {
  readonly [Symbol.toStringTag]: string = 'Promise';
  readonly #promise: Promise<T>;
  readonly #onAwait: () => void;

  constructor(promise: Promise<T>, onAwait: () => void) {
    this.#promise = promise;
    this.#onAwait = onAwait;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is a promise.
  then<A = T, B = never>(
    onValue?: ((value: T) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    queueMicrotask(this.#onAwait);
    return this.#promise.then(onValue, onError);
  }

  catch<B = never>(onError?: ((error: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.then(undefined, onError);
  }

  finally(onEnd?: (() => void) | null): Promise<T> {
    queueMicrotask(this.#onAwait);
    return this.#promise.finally(onEnd);
  }
}
