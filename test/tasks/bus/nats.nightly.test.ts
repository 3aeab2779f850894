// The bus of examples/bus-nats.ts on a real nats-server.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const program = join(import.meta.dirname, '../../../examples/bus-nats.ts');
const STARTED = /Listening for client connections on (\S+)[\s\S]*Server is ready/;

test('processes of a store hear of changes over NATS', async () => {
  // -1: any free port.
  const server = spawn('nats-server', ['--addr', '127.0.0.1', '--port', '-1'], { stdio: ['ignore', 'ignore', 'pipe'] });
  try {
    let log = '';
    while (!STARTED.test(log)) log += String((await once(server.stderr, 'data'))[0]);
    const args = ['--conditions=@whoa/source', '--no-warnings', program, STARTED.exec(log)![1]!];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    expect(stdout).toBe('heard over NATS: status\n');
  } finally {
    server.kill();
    await once(server, 'exit');
  }
});
