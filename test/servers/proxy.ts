import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** A network between a client and a server that can lose the server's responses. */
export interface Proxy extends AsyncDisposable {
  readonly port: number;
  readonly address: Address;
  /** Drops everything that the server sends. */
  swallowAnswers(): void;
  /** Resolves when a response of the server has been dropped. */
  readonly swallowed: Promise<void>;
  /** Stops all traffic on the open connections without closing them; new ones work. */
  freeze(): void;
  /** Closes the frozen connections on both sides. */
  endFrozen(): void;
  /** Stops reading from the server on the open connections, so that its responses pile up. */
  stopReading(): void;
  /** New connections lead there. */
  redirect(to: Address): void;
  /** How many connections have been opened. */
  readonly opened: number;
  /** Breaks every connection off; new ones work. */
  cut(): void;
}

/** `host`: where it listens. */
export async function startProxy(to: Address, host = '127.0.0.1'): Promise<Proxy> {
  const sockets = new Set<Socket>();
  const frozen = new Set<Socket>();
  let target = to;
  let opened = 0;
  let isSwallowing = false;
  let note = (): void => {};
  const swallowed = new Promise<void>((resolve) => (note = resolve));
  const server = createServer((client) => {
    opened++;
    const upstream = connect(target);
    const isDeaf = (): boolean => isSwallowing && sockets.has(client);
    for (const [one, other] of [[client, upstream] as const, [upstream, client] as const]) {
      sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        sockets.delete(one);
        if (!frozen.has(one)) other.destroy();
      });
    }
    client.on('data', (data) => !frozen.has(client) && upstream.write(data));
    upstream.on('data', (data) => {
      if (frozen.has(client)) return;
      if (isDeaf()) note();
      else client.write(data);
    });
  }).listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  return {
    port,
    address: { host, port },
    swallowed,
    swallowAnswers: () => {
      isSwallowing = true;
    },
    freeze() {
      for (const socket of sockets) frozen.add(socket);
    },
    endFrozen() {
      for (const socket of frozen) socket.destroy();
      frozen.clear();
    },
    stopReading() {
      for (const socket of sockets) socket.pause();
    },
    redirect(other) {
      target = other;
    },
    get opened() {
      return opened;
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
