/* oxlint-disable unicorn/no-thenable -- it is a promise */
/**
 * Creates a promise that reports when it is awaited. It is not a native one: `await` bypasses the methods of those. It reports
 * a moment later: code that passes it on synchronously, before the loop starts, means the end of the turn.
 */
export function createAwaitedPromise<T>(promise: Promise<T>, onAwait: () => void): Promise<T> {
  const awaited = (): Promise<T> => {
    queueMicrotask(onAwait);
    return promise;
  };
  return {
    // biome-ignore lint/suspicious/noThenProperty: it is a promise.
    then: (onValue, onError) => awaited().then(onValue, onError),
    catch: (onError) => awaited().catch(onError),
    finally: (onEnd) => awaited().finally(onEnd),
    [Symbol.toStringTag]: 'Promise',
  };
}
