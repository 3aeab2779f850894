import type { CancellationToken } from '@whoa/core';
import type { Clock } from '@whoa/core/embed';

/**
 * Aborts a request when its call is cancelled, with only the kind of the reason. During the first `debounceMs` of a request it
 * waits for the rest of them, or for `kill`: a response that is lost on the way may name a task, which then continues unseen.
 */
export function forwardCancel(
  token: CancellationToken,
  { clock, debounceMs }: { readonly clock: Clock; readonly debounceMs: number },
): Disposable & { readonly signal: AbortSignal } {
  const stop = new AbortController();
  const heldUntil = clock.now() + debounceMs;
  let timer: Disposable | undefined;
  const subscription = token.onCancel((level, { kind }) => {
    timer?.[Symbol.dispose]();
    const left = level === 'kill' ? 0 : heldUntil - clock.now();
    if (left <= 0) stop.abort(kind);
    else timer = clock.setTimer(left, () => stop.abort(kind));
  });
  return {
    signal: stop.signal,
    [Symbol.dispose]() {
      subscription[Symbol.dispose]();
      timer?.[Symbol.dispose]();
    },
  };
}
