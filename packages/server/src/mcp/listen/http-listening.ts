import type { JSONRPCMessage } from '@modelcontextprotocol/server';
import { systemClock } from '@whoa/core/embed';
import type { Access } from '../../access/access.ts';
import type { Principal } from '../../access/principal.ts';
import { eventStream } from '../../api/http/sse.ts';
import { LISTEN, type ListenParts, listenToTasks, readListenRequest, refuseListening } from './listen-request.ts';

const HEARTBEAT_MS = 15_000;

interface HttpListenOptions extends ListenParts {
  readonly access: Access;
  readonly principal: Principal;
  /** Serves a request without tasks. */
  readonly serve: (request: Request) => Promise<Response>;
}

/** Serves a request, and if it listens to tasks, their changes as server-sent events. A disconnect only ends the listening. */
export async function serveListening(request: Request, options: HttpListenOptions): Promise<Response> {
  const { access, principal, serve } = options;
  if (request.headers.get('mcp-method') !== LISTEN) return serve(request);
  const whole = await access.readBody(request);
  if (whole instanceof Response) return whole;
  const listening = readListenRequest(parse(await whole.clone().text()));
  const served = await serve(whole);
  // The library has checked the request. It knows no tasks, so its stream is empty.
  if (listening === undefined || served.headers.get('content-type') !== EVENT_STREAM) return served;
  await served.body?.cancel();
  if (!listening.hasTasks) return Response.json(refuseListening(listening), { status: 400 });
  const slot = access.openStream(principal);
  if (slot instanceof Response) return slot;
  const { acknowledgement, changes, end } = await listenToTasks(listening, options).catch((error: unknown) => {
    slot[Symbol.dispose]();
    throw error;
  });
  const messages = startWith<JSONRPCMessage>(acknowledgement, changes);
  const close = (): void => slot[Symbol.dispose]();
  const { signal } = request;
  const stream = { clock: systemClock, heartbeatMs: HEARTBEAT_MS, toText, farewell: toText(end), close, signal };
  return new Response(eventStream(messages, stream), {
    headers: { 'content-type': EVENT_STREAM, 'cache-control': 'no-cache, no-transform', 'x-accel-buffering': 'no' },
  });
}

const EVENT_STREAM = 'text/event-stream';

function toText(message: JSONRPCMessage): string {
  return `event: message\ndata: ${JSON.stringify(message)}\n\n`;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function startWith<T>(first: T, rest: AsyncIterator<T, undefined>): AsyncIterator<T, undefined> {
  let isFirst = true;
  return {
    async next() {
      if (!isFirst) return rest.next();
      isFirst = false;
      return { value: first, done: false };
    },
    return: () => rest.return!(),
  };
}
