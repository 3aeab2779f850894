import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { within } from './clock.ts';

test('a message that arrived while this process was suspended is in time', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const socket = connect(port, '127.0.0.1');
  const [peer] = await accepted;
  const heard = once(socket, 'data');
  peer.write('it has ended');
  const isInTime = within(1, heard);
  const until = performance.now() + 20;
  while (performance.now() < until);
  expect(await isInTime).toBe(true);
  socket.destroy();
  server.close();
});

test('a message that never comes is late', async () => {
  expect(await within(1, new Promise(() => {}))).toBe(false);
});
