import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { getRequestListener, serve } from '@hono/node-server';
import { settings } from '@whoa/core/internal';

/** Longer than load balancers keep idle connections (60 s): one that we closed first would fail their next request. */
const KEEP_ALIVE_MS = 75_000;
/** How long a response that has begun may take when the server closes. */
const FINISH_MS = 2_000;

/** Where to listen. */
export interface ListenOptions {
  /** Defaults to 0, which takes any free port. */
  readonly port?: number | undefined;
  /** Defaults to loopback, which other machines cannot reach. */
  readonly host?: string | undefined;
}

const LISTEN_RULES: settings.Rules<ListenOptions> = {
  port: settings.rule(
    'a port from 0 to 65535',
    (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) < 65_536,
  ),
  host: settings.nonEmptyText,
};

/** A listening handler. Dispose it to stop: requests get their response, streams are cut, and clients reconnect to another instance. */
export interface ListeningServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly server: Server;
}

/** A web-standard handler that can be served. */
export interface FetchHandler {
  fetch(request: Request): Response | Promise<Response>;
}

/**
 * Adapts a web-standard handler to Node's HTTP server, Express and Fastify. Mount it before any body parser.
 *
 * @returns The listener.
 */
export function toNodeListener(handler: FetchHandler): (request: IncomingMessage, response: ServerResponse) => void {
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
 * @throws {@link SettingsError} when an option is invalid.
 */
export async function listen(handler: FetchHandler, options: ListenOptions = {}): Promise<ListeningServer> {
  const { port = 0, host = '127.0.0.1' } = settings.readSettings<ListenOptions>(options, LISTEN_RULES);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const server = serve({ fetch: (request) => handler.fetch(request), port, hostname: host }, (at) =>
    resolve(at.port),
  ) as Server;
  server.once('error', reject);
  const taken = await promise;
  server.off('error', reject);
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  const open = new Set<ServerResponse>();
  server.on('request', (_request, response: ServerResponse) => {
    open.add(response);
    response.once('close', () => open.delete(response));
  });
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${taken}`,
    port: taken,
    server,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((ended) => server.close(ended));
      const last = [...open].filter((response) => !isStream(response));
      const timer = setTimeout(() => server.closeAllConnections(), FINISH_MS);
      await Promise.all(last.map((response) => new Promise((ended) => response.once('close', ended))));
      clearTimeout(timer);
      server.closeAllConnections();
      await closed;
    },
  };
}

function isStream(response: ServerResponse): boolean {
  return response.headersSent && String(response.getHeader('content-type')).startsWith('text/event-stream');
}
