import { type Clock, systemClock } from '@whoa/core/embed';
import type { Access } from './access/access.ts';
import type { Principal } from './access/principal.ts';

/** How long a browser waits before it reconnects. */
const RECONNECT_MS = 1_000;
/** Proxies close a connection that is silent for longer. */
const HEARTBEAT_MS = 15_000;

interface EventStreamOptions<Seen> {
  readonly access: Access;
  /** Streams of another kind are counted apart. */
  readonly kind?: string;
  readonly clock?: Clock;
  /** Converts an item to the text of an event. Defaults to an event with only its data. */
  readonly toText?: (seen: Seen) => string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent after the last event. */
  readonly terminator?: string;
}

/**
 * Responds with server-sent events, as fast as the reader reads. A reader that leaves only ends the reading: then the signal
 * fires.
 */
export function streamEvents<Seen>(
  { request, who }: { readonly request: Request; readonly who: Principal },
  open: (signal: AbortSignal) => AsyncIterator<Seen, undefined>,
  { access, kind, clock = systemClock, toText = toData, headers, terminator }: EventStreamOptions<Seen>,
): Response {
  const slot = access.openStream(who, kind);
  if (slot instanceof Response) return slot;
  const encoder = new TextEncoder();
  const leaving = new AbortController();
  const following = open(leaving.signal);
  let heartbeat: Disposable | undefined;
  let isOver = false;

  const stop = async (): Promise<void> => {
    if (isOver) return;
    isOver = true;
    heartbeat?.[Symbol.dispose]();
    request.signal.removeEventListener('abort', onAbort);
    leaving.abort();
    slot[Symbol.dispose]();
    await following.return?.();
  };
  const onAbort = (): void => {
    stop().catch(() => {});
  };

  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      const beat = (): void => {
        // Skip the heartbeat if the reader does not read: they would pile up.
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(': beat\n\n'));
        heartbeat = clock.setTimer(HEARTBEAT_MS, beat, { keepAlive: false });
      };
      // Send this immediately, so that the reader knows that it is connected.
      controller.enqueue(encoder.encode(`retry: ${RECONNECT_MS}\n\n`));
      heartbeat = clock.setTimer(HEARTBEAT_MS, beat, { keepAlive: false });
      if (request.signal.aborted) onAbort();
      else request.signal.addEventListener('abort', onAbort, { once: true });
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
  return new Response(body, {
    headers: {
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
      // Stops proxies from buffering small pieces.
      'x-accel-buffering': 'no',
      ...headers,
    },
  });
}

/** JSON contains no line feeds, so it is one line of data. */
function toData(seen: unknown): string {
  return `data: ${JSON.stringify(seen)}\n\n`;
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
