import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A balancer in front of the instances, as browsers reach them. It knows nothing of HTTP. */
export interface Front extends AsyncDisposable {
  readonly url: string;
  /** Cuts all connections, and refuses new ones until it is called with `false`. */
  cut(isCut: boolean): void;
  /** Passes nothing on until it is called with `false`. Connections that are opened meanwhile stay silent for good. */
  silence(isSilent: boolean): void;
}

/** Connects to the first port that listens. */
async function reach(ports: readonly number[]): Promise<Socket | undefined> {
  for (const port of ports) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    if (isOpen) return socket;
  }
  return undefined;
}

/** Opens a balancer; `ports` are the instances that live, the preferred one first. */
export async function openFront(ports: () => readonly number[]): Promise<Front> {
  const sockets = new Set<Socket>();
  /** Those with both sides. */
  const passing = new Set<Socket>();
  let isCut = false;
  let isSilent = false;
  const track = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => sockets.delete(socket));
  };
  const server = createServer((client) => {
    track(client);
    if (isCut) return void client.destroy();
    if (isSilent) return void client.pause();
    reach(ports())
      .then((upstream) => {
        if (upstream === undefined || client.destroyed) {
          upstream?.destroy();
          return client.destroy();
        }
        track(upstream);
        for (const socket of [client, upstream]) passing.add(socket.once('close', () => passing.delete(socket)));
        client.pipe(upstream).pipe(client);
        client.once('close', () => upstream.destroy());
        return upstream.once('close', () => client.destroy());
      })
      .catch(() => client.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const drop = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut(cut) {
      isCut = cut;
      if (cut) drop();
    },
    silence(silent) {
      isSilent = silent;
      const change = silent ? 'pause' : 'resume';
      for (const socket of passing) socket[change]();
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      drop();
      await closed;
    },
  };
}
