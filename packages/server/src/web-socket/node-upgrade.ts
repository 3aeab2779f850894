import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { type Clock, systemClock } from '@whoa/core/embed';
import type { WebSocket, WebSocketServer } from 'ws';
import { refuse } from '../access/refusal.ts';
import { MAX_FRAME_BYTES } from './socket-session.ts';
import type { ServeSocket } from './web-sockets.ts';

/** A socket whose other end does not respond for this long is gone. */
const PING_MS = 15_000;

/** Replaced by tests. */
export interface WebSocketServerOptions {
  /** Decides when a socket is pinged. */
  readonly clock?: Clock;
}

interface UpgradeHandler {
  upgrade(request: Request): Promise<Response | ServeSocket>;
}

/**
 * Serves WebSockets with Node's HTTP server. A request without access is refused before the handshake.
 *
 * @returns A handle: dispose it to stop. Runs that were read over the sockets continue.
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http';
 * import { createChatHandler, serveWebSockets, toNodeListener } from '@whoa/server';
 *
 * const handler = createChatHandler({ store, authenticate: () => 'ada', agent });
 * const server = createServer(toNodeListener(handler));
 * serveWebSockets(server, handler);
 * ```
 */
export function serveWebSockets(
  server: Server,
  handler: UpgradeHandler,
  { clock = systemClock }: WebSocketServerOptions = {},
): Disposable {
  let opened: Promise<WebSocketServer> | undefined;
  const streams = new Set<Duplex>();
  const onUpgrade = (message: IncomingMessage, stream: Duplex, head: Buffer): void => {
    // Needed because, without a listener, a connection error would end the process.
    stream.on('error', () => stream.destroy());
    stream.on('close', () => streams.delete(stream));
    streams.add(stream);
    answerTo(message, handler)
      .then(async (answer) => {
        if (!(answer instanceof Response)) {
          const sockets = await (opened ??= openServer());
          sockets.handleUpgrade(message, stream, head, keepAlive(answer, clock));
        } else if (answer.status === 404 && server.listenerCount('upgrade') > 1) {
          // The path belongs to another handler.
          streams.delete(stream);
        } else await write(stream, answer);
      })
      .catch(() => stream.destroy());
  };
  server.on('upgrade', onUpgrade);
  return {
    [Symbol.dispose]() {
      server.off('upgrade', onUpgrade);
      for (const stream of streams) stream.destroy();
    },
  };
}

async function answerTo(message: IncomingMessage, handler: UpgradeHandler): Promise<Response | ServeSocket> {
  const request = requestOf(message);
  if (request !== undefined) return handler.upgrade(request);
  return refuse(400, { code: 'invalid', message: 'Host and path are not a valid URL' });
}

async function openServer(): Promise<WebSocketServer> {
  const { WebSocketServer: Sockets } = await import('ws');
  return new Sockets({ noServer: true, maxPayload: MAX_FRAME_BYTES });
}

function requestOf({ url = '/', headers, socket }: IncomingMessage): Request | undefined {
  const all = new Headers();
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) all.set(name, [value].flat().join(', '));
  const address = `${'encrypted' in socket ? 'https' : 'http'}://${headers.host ?? 'localhost'}${url}`;
  return URL.canParse(address) ? new Request(address, { headers: all }) : undefined;
}

/** Serves a socket, and pings it at intervals. */
function keepAlive(serve: ServeSocket, clock: Clock): (socket: WebSocket) => void {
  return (socket) => {
    let isThere = true;
    let timer: Disposable;
    const ask = (): void => {
      if (isThere) socket.ping();
      else socket.terminate();
      isThere = false;
      askLater();
    };
    const askLater = (): void => void (timer = clock.setTimer(PING_MS, ask, { keepAlive: false }));
    askLater();
    socket.on('pong', () => (isThere = true));
    socket.on('close', () => timer[Symbol.dispose]());
    serve(socket);
  };
}

async function write(stream: Duplex, response: Response): Promise<void> {
  const body = await response.text();
  const lines = [
    `HTTP/1.1 ${response.status} ${STATUS_CODES[response.status] ?? ''}`,
    'connection: close',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  stream.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
}
