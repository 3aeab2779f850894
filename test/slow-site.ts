// A web site with a page that loads immediately and one that never ends.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface SlowSite extends AsyncDisposable {
  readonly quick: string;
  readonly slow: string;
  /** Resolves when the slow page has been asked for and has begun to come. */
  readonly whenAsked: () => Promise<void>;
}

export async function startSlowSite(): Promise<SlowSite> {
  let asked = 0;
  let heard = 0;
  const server = createServer((request, response) => {
    response.shouldKeepAlive = false;
    if (request.url === '/quick') response.end('all of it');
    else response.write('the beginning', () => asked++);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    quick: `${base}/quick`,
    slow: `${base}/slow`,
    async whenAsked() {
      heard++;
      while (asked < heard) await new Promise((resolve) => setImmediate(resolve));
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
