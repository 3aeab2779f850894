import type { Clock } from '@whoa/core/embed';

/** How long a browser waits before it comes back. */
const RECONNECT_MS = 1_000;

export interface EventStreamOptions<Seen> {
  readonly clock: Clock;
  readonly heartbeatMs: number;
  /** An event as it is sent. */
  readonly toText: (seen: Seen) => string;
  /** Sent when there is no more to read. */
  readonly farewell?: string;
  /** Nobody reads any more, or there is no more to read. */
  readonly close: () => void;
  readonly signal: AbortSignal;
}

/** What is followed, as server-sent events. It is read as fast as the reader reads, and only the reading ever stops. */
export function eventStream<Seen>(
  following: AsyncIterator<Seen, undefined>,
  { clock, heartbeatMs, toText, farewell, close, signal }: EventStreamOptions<Seen>,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let heartbeat: Disposable | undefined;
  let isOver = false;

  const stop = async (): Promise<void> => {
    if (isOver) return;
    isOver = true;
    heartbeat?.[Symbol.dispose]();
    signal.removeEventListener('abort', onAbort);
    close();
    await following.return?.();
  };
  const onAbort = (): void => {
    stop().catch(() => {});
  };

  return new ReadableStream<Uint8Array>({
    start(controller) {
      const beat = (): void => {
        // A reader that does not read gets none: they would pile up.
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(': beat\n\n'));
        heartbeat = clock.setTimer(heartbeatMs, beat, { keepAlive: false });
      };
      // At once, so that the reader knows that it is connected.
      controller.enqueue(encoder.encode(`retry: ${RECONNECT_MS}\n\n`));
      heartbeat = clock.setTimer(heartbeatMs, beat, { keepAlive: false });
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
    },
    async pull(controller) {
      const next = await nextOf(following);
      if (next !== undefined && !isOver) return controller.enqueue(encoder.encode(toText(next)));
      if (!isOver && farewell !== undefined) controller.enqueue(encoder.encode(farewell));
      await stop();
      controller.close();
    },
    cancel: stop,
  });
}

async function nextOf<Seen>(following: AsyncIterator<Seen, undefined>): Promise<Seen | undefined> {
  try {
    const { value } = await following.next();
    return value;
  } catch {
    // It is no longer kept, or the store was closed: who comes back is told which.
    return undefined;
  }
}
