// A real PgBouncer in front of a PostgreSQL, on a free loopback port, in a temporary folder.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from './free-port.ts';
import { type PostgresServer, readAccount } from './postgres.ts';

const READY_MS = 10_000;

export interface PgBouncer extends AsyncDisposable {
  readonly url: string;
}

export async function startPgBouncer(
  server: Pick<PostgresServer, 'url'>,
  mode: 'session' | 'transaction',
): Promise<PgBouncer> {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-pgbouncer-'));
  const port = await freePort();
  const file = join(folder, 'pgbouncer.ini');
  const { hostname, port: serverPort, username } = new URL(server.url);
  writeFileSync(
    file,
    `[databases]
postgres = host=${hostname} port=${serverPort} dbname=postgres user=${username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
auth_type = any
pool_mode = ${mode}
unix_socket_dir =
default_pool_size = 20
ignore_startup_parameters = extra_float_digits
`,
  );
  // It refuses to run as root.
  const account = process.getuid?.() === 0 ? await readAccount('postgres') : undefined;
  if (account !== undefined) for (const path of [folder, file]) chownSync(path, account.uid, account.gid);
  const child = spawn('/usr/sbin/pgbouncer', ['-q', file], { ...account, cwd: folder, stdio: 'ignore' });
  const ended = once(child, 'exit');
  await untilOpen(port);
  return {
    url: `postgres://${username}@127.0.0.1:${port}/postgres`,
    async [Symbol.asyncDispose]() {
      child.kill('SIGQUIT');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function untilOpen(port: number): Promise<void> {
  const until = performance.now() + READY_MS;
  while (performance.now() < until) {
    const socket = connect(port, '127.0.0.1');
    try {
      await once(socket, 'connect');
      return;
    } catch {
      await wait(20);
    } finally {
      socket.destroy();
    }
  }
  throw new Error(`pgbouncer was not ready within ${READY_MS} ms; is it installed? apt-get install pgbouncer`);
}
