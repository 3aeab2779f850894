import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A response without anything that a request could choose. */
interface PlainAnswer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

export interface RoutesOptions {
  readonly host: string;
  readonly port: number;
  /** The answers by path. An answer that fails is a 503. */
  readonly routes: Readonly<Record<string, () => Promise<PlainAnswer>>>;
}

/** Serves a few paths over HTTP, and nothing else. */
export async function serveRoutes({ host, port, routes }: RoutesOptions): Promise<AsyncDisposable & { url: string }> {
  const server = createServer((request, response) => {
    const send = ({ status, type, body }: PlainAnswer): void => {
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
      response.end(body);
    };
    const path = request.url ?? '';
    if (Object.hasOwn(routes, path)) routes[path]!().then(send, () => send(toOk(503)));
    else send(toOk(404));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const { port: taken } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${taken}`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((ended) => server.close(ended));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** `/healthz`: the process responds. `/readyz`: the worker takes tasks and the store responds. */
export function healthRoutes(isReady: () => Promise<boolean>): RoutesOptions['routes'] {
  return {
    '/healthz': () => Promise.resolve(toOk(200)),
    '/readyz': async () => toOk((await isReady()) ? 200 : 503),
  };
}

/** `/metrics`, in the text format of Prometheus. */
export function metricsRoutes(metrics: () => Promise<string>): RoutesOptions['routes'] {
  const type = 'text/plain; version=0.0.4; charset=utf-8';
  return { '/metrics': async () => ({ status: 200, type, body: await metrics() }) };
}

function toOk(status: number): PlainAnswer {
  return { status, type: 'application/json', body: JSON.stringify({ ok: status === 200 }) };
}
