import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { getRequestListener, serve } from '@hono/node-server';

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

/** A web-standard handler that can be served. */
export interface Listener {
  fetch(request: Request): Response | Promise<Response>;
}

/**
 * Adapts a web-standard handler to Node's HTTP server, Express and Fastify. Mount it before any body parser.
 *
 * @returns The listener.
 */
export function toNodeListener(handler: Listener): (request: IncomingMessage, response: ServerResponse) => void {
  const listener = getRequestListener((request) => handler.fetch(request));
  return (request, response) => {
    // The listener sends its own error responses.
    listener(request, response).catch(() => {});
  };
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
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${taken}`,
    port: taken,
    server,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((ended) => server.close(ended));
      server.closeAllConnections();
      await closed;
    },
  };
}
