import { systemWorld } from '@whoa/core/embed';
import type { Access } from '../http/access/access.ts';
import type { Principal } from '../http/access/principal.ts';
import { eventStream } from '../http/sse.ts';

export interface ReplyStreamOptions {
  readonly access: Access;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent after the last event. */
  readonly terminator?: string;
}

/** Sends a reply as server-sent events. A reader that leaves only ends the reading. */
export function replyStream<Event>(
  { request, who }: { readonly request: Request; readonly who: Principal },
  open: (signal: AbortSignal) => AsyncIterator<Event, undefined>,
  { access, headers, terminator }: ReplyStreamOptions,
): Response {
  const slot = access.openStream(who);
  if (slot instanceof Response) return slot;
  const leaving = new AbortController();
  const body = eventStream(open(leaving.signal), {
    clock: systemWorld.clock,
    toText: (event) => `data: ${JSON.stringify(event)}\n\n`,
    ...(terminator !== undefined && { terminator }),
    close() {
      leaving.abort();
      slot[Symbol.dispose]();
    },
    signal: request.signal,
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
