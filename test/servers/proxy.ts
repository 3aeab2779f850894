import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** A network between a client and a server that can lose what the server says. */
export interface Proxy extends AsyncDisposable {
  readonly port: number;
  /** From now on nothing the server says arrives. */
  swallowAnswers(): void;
  /** Resolves when the server has said something that did not arrive. */
  readonly swallowed: Promise<void>;
  /** Breaks every connection off; new ones work. */
  cut(): void;
}

export async function startProxy(to: { readonly host: string; readonly port: number }): Promise<Proxy> {
  const sockets = new Set<Socket>();
  let isSwallowing = false;
  let note = (): void => {};
  const swallowed = new Promise<void>((resolve) => (note = resolve));
  const server = createServer((client) => {
    const upstream = connect(to);
    const isDeaf = (): boolean => isSwallowing && sockets.has(client);
    for (const [one, other] of [[client, upstream] as const, [upstream, client] as const]) {
      sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
    client.on('data', (data) => upstream.write(data));
    upstream.on('data', (data) => {
      if (isDeaf()) note();
      else client.write(data);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as { port: number }).port,
    swallowed,
    swallowAnswers: () => {
      isSwallowing = true;
    },
    cut() {
      isSwallowing = false;
      for (const socket of sockets) socket.destroy();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
