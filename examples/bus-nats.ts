// Your own bus: the processes of a store tell each other over NATS what has changed.
//   nats-server & node examples/bus-nats.ts [HOST:PORT]
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTaskStore } from '@whoa/tasks';
import type { Bus } from '@whoa/tasks/store';

const RETRY_MS = 250;
const MAX_BUFFERED = 1_000_000;

/** Each inbox is a subject. The store seals what it sends, so others on the server can neither read nor forge it. */
function createNatsBus(host: string, port: number): Bus {
  const inbox = `whoa.${randomBytes(12).toString('hex')}`;
  const listeners = new Set<(message: Uint8Array) => void>();
  const gaps = new Set<() => void>();
  const listening = Promise.withResolvers<void>();
  let [isClosed, hasListened] = [false, false];
  let socket: Socket;

  const handle = (line: string): void => {
    if (line === 'PING') socket.write('PONG\r\n');
    if (line !== 'PONG') return;
    // The server has our subscription. After a loss, messages were missed.
    if (hasListened) for (const gap of gaps) gap();
    hasListened = true;
    listening.resolve();
  };
  const open = (): void => {
    let rest = Buffer.alloc(0);
    socket = connect(port, host, () => socket.write(`CONNECT {"verbose":false}\r\nSUB ${inbox} 1\r\nPING\r\n`));
    socket.on('error', () => {});
    socket.once('close', () => !isClosed && setTimeout(open, RETRY_MS).unref());
    socket.on('data', (data: Buffer) => {
      rest = Buffer.concat([rest, data]);
      for (let end = rest.indexOf('\r\n'); end >= 0; end = rest.indexOf('\r\n')) {
        const line = rest.toString('utf8', 0, end);
        const size = line.startsWith('MSG ') ? Number(line.slice(line.lastIndexOf(' ') + 1)) : -2;
        const from = end + 2;
        if (rest.length < from + size + 2) return;
        if (size < 0) handle(line);
        else for (const listener of listeners) listener(Buffer.from(rest.subarray(from, from + size)));
        rest = rest.subarray(from + size + 2);
      }
    });
  };
  open();

  return {
    inbox,
    // It may drop: receivers also look by themselves, only later.
    send(to, message) {
      if (socket.readyState !== 'open' || socket.writableLength > MAX_BUFFERED) return;
      socket.write(Buffer.concat([Buffer.from(`PUB ${to} ${message.length}\r\n`), message, Buffer.from('\r\n')]));
    },
    async receive(listener) {
      listeners.add(listener);
      await listening.promise;
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
    onGap(listener) {
      gaps.add(listener);
      return { [Symbol.dispose]: () => void gaps.delete(listener) };
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      await new Promise<void>((resolve) => socket.end(resolve));
      socket.destroy();
    },
  };
}

const [host = '127.0.0.1', port = '4222'] = (process.argv[2] ?? '127.0.0.1:4222').split(':');
const folder = mkdtempSync(join(tmpdir(), 'whoa-'));
const file = join(folder, 'tasks.db');
{
  // Two stores, as two processes would open them. On Postgres they could be on two machines.
  await using here = createTaskStore({ backend: 'sqlite', file, bus: createNatsBus(host, Number(port)) });
  await using there = createTaskStore({ backend: 'sqlite', file, bus: createNatsBus(host, Number(port)) });
  const heard = Promise.withResolvers<string>();
  const watching = await here.watch({ tenant: 'acme' }, ({ type }) => heard.resolve(type));
  await there.create({ tenant: 'acme', agent: 'storyteller', input: 'Tell me a story' });
  console.log(`heard over NATS: ${await heard.promise}`);
  await watching[Symbol.asyncDispose]();
}
rmSync(folder, { recursive: true });
