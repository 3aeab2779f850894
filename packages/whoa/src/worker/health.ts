import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface HealthOptions {
  readonly host: string;
  readonly port: number;
  /** Whether the worker takes tasks and the store responds. */
  readonly isReady: () => Promise<boolean>;
}

/** Serves `/healthz` (the process responds) and `/readyz` (the worker takes tasks) over HTTP, and nothing else. */
export async function serveHealth({ host, port, isReady }: HealthOptions): Promise<AsyncDisposable & { url: string }> {
  const server = createServer((request, response) => {
    const answer = (status: number): void => {
      response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
      response.end(JSON.stringify({ ok: status === 200 }));
    };
    if (request.url === '/healthz') answer(200);
    else if (request.url !== '/readyz') answer(404);
    else {
      isReady().then(
        (ready) => answer(ready ? 200 : 503),
        () => answer(503),
      );
    }
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
