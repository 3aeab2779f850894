/** Waits, with some jitter, or until something suggests that the network is back. */
export function pause(ms: number, ...signals: readonly (AbortSignal | undefined)[]): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const over = new AbortController();
  const timer = setTimeout(resolve, ms * (0.5 + Math.random() / 2));
  // Outside of browsers there is neither.
  const { window, document } = globalThis as { window?: EventTarget; document?: EventTarget };
  window?.addEventListener('online', () => resolve(), { signal: over.signal });
  document?.addEventListener('visibilitychange', () => resolve(), { signal: over.signal });
  for (const signal of signals) signal?.addEventListener('abort', () => resolve(), { signal: over.signal });
  return promise.finally(() => {
    clearTimeout(timer);
    over.abort();
  });
}
