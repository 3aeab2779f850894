import type { Clock } from '@whoa/core/embed';

/** How long a browser waits before it reconnects. */
const RECONNECT_MS = 1_000;
/** Proxies close a connection that is silent for longer. */
const HEARTBEAT_MS = 15_000;

export interface EventStreamOptions<Seen> {
  readonly clock: Clock;
  /** Converts an item to the text of an event. */
  readonly toText: (seen: Seen) => string;
  /** Sent after the last event. */
  readonly terminator?: string;
  /** Called when the reader has left, or there is no more to read. */
  readonly close: () => void;
  readonly signal: AbortSignal;
}

/** Sends what is followed as server-sent events, as fast as the reader reads. A disconnect only ends the reading. */
export function eventStream<Seen>(
  following: AsyncIterator<Seen, undefined>,
  { clock, toText, terminator, close, signal }: EventStreamOptions<Seen>,
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
        // Skip the heartbeat if the reader does not read: they would pile up.
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(': beat\n\n'));
        heartbeat = clock.setTimer(HEARTBEAT_MS, beat, { keepAlive: false });
      };
      // Send this immediately, so that the reader knows that it is connected.
      controller.enqueue(encoder.encode(`retry: ${RECONNECT_MS}\n\n`));
      heartbeat = clock.setTimer(HEARTBEAT_MS, beat, { keepAlive: false });
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
    },
    async pull(controller) {
      const next = await readNext(following);
      if (next !== undefined && !isOver) return controller.enqueue(encoder.encode(toText(next)));
      if (!isOver && terminator !== undefined) controller.enqueue(encoder.encode(terminator));
      await stop();
      controller.close();
    },
    cancel: stop,
  });
}

async function readNext<Seen>(following: AsyncIterator<Seen, undefined>): Promise<Seen | undefined> {
  try {
    const { value } = await following.next();
    return value;
  } catch {
    // The task is no longer kept, or the store was closed: a reader that reconnects gets the error.
    return undefined;
  }
}
