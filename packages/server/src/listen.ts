import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { getRequestListener, serve } from '@hono/node-server';
import { serveWebSockets } from './web-socket/node-upgrade.ts';
import type { ServeSocket } from './web-socket/web-sockets.ts';

/** Where to listen. */
export interface ListenOptions {
  /** Defaults to 0, which takes any free port. */
  readonly port?: number;
  /** Defaults to loopback, which other machines cannot reach. */
  readonly host?: string;
}

/** A listening handler. Dispose it to stop: clients are disconnected, and reconnect to another instance. */
export interface Listening extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly server: Server;
}

/**
 * Adapts a web-standard handler to Node's HTTP server, Express and Fastify. Mount it before any body parser.
 *
 * @returns The listener.
 */
export function toNodeListener(handler: {
  fetch(request: Request): Response | Promise<Response>;
}): (request: IncomingMessage, response: ServerResponse) => void {
  const listener = getRequestListener((request) => handler.fetch(request));
  return (request, response) => {
    // The listener sends its own error responses.
    listener(request, response).catch(() => {});
  };
}

/** A handler that can be served: requests, and WebSockets if it has an `upgrade`. */
export interface Listener {
  fetch(request: Request): Response | Promise<Response>;
  upgrade?(request: Request): Promise<Response | ServeSocket>;
}

/**
 * Serves a web-standard handler with Node's HTTP server.
 *
 * @returns The server, once it listens. Dispose it to stop.
 */
export async function listen(
  handler: Listener,
  { port = 0, host = '127.0.0.1' }: ListenOptions = {},
): Promise<Listening> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const server = serve({ fetch: (request) => handler.fetch(request), port, hostname: host }, (at) =>
    resolve(at.port),
  ) as Server;
  server.once('error', reject);
  const taken = await promise;
  server.off('error', reject);
  const sockets = handler.upgrade && serveWebSockets(server, { upgrade: (request) => handler.upgrade!(request) });
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${taken}`,
    port: taken,
    server,
    async [Symbol.asyncDispose]() {
      sockets?.[Symbol.dispose]();
      const closed = new Promise((ended) => server.close(ended));
      server.closeAllConnections();
      await closed;
    },
  };
}
