import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createNamespace, whyNoNamespaces } from './namespaces.ts';

const CLIENT = `
const socket = require('node:net').connect(Number(process.argv[1]), process.argv[2]);
let sent = 0;
socket.on('error', (error) => process.stdout.write('error ' + error.code + '\\n'));
setInterval(() => socket.write(String(++sent) + '\\n'), 20);
`;

test.skipIf(whyNoNamespaces() !== undefined)(
  'packets over a cut link vanish, and arrive once it is repaired',
  async () => {
    using namespace = createNamespace();
    const server = createServer().listen(0, namespace.host);
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const [program, ...args] = [...namespace.inside, process.execPath, '-e', CLIENT, `${port}`, namespace.host];
    const client = spawn(program!, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let said = '';
    client.stdout.on('data', (data: Buffer) => (said += String(data)));
    const [socket] = (await once(server, 'connection')) as [Socket];
    await once(socket, 'data');
    namespace.cut();
    // Packets on their way may still arrive; then nothing does, and neither side learns that the connection is gone.
    let isQuiet = false;
    while (!isQuiet) {
      isQuiet = await Promise.race([
        once(socket, 'data').then(() => false),
        new Promise<boolean>((resolve) => setTimeout(resolve, 500, true)),
      ]);
    }
    expect(socket.destroyed).toBe(false);
    expect(said).toBe('');
    namespace.mend();
    await once(socket, 'data');
    const ended = once(client, 'exit');
    client.kill('SIGKILL');
    await ended;
    socket.destroy();
    server.close();
    await once(server, 'close');
  },
);
