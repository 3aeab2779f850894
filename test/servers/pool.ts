// One Redis and one Postgres for each test worker that needs one, instead of one for each test. A server is lent to one
// borrower at a time and is empty when it is lent.

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startPostgres } from './postgres.ts';
import { query } from './query.ts';
import { ask, startRedis } from './redis.ts';

export type ServerKind = 'redis' | 'postgres';

interface PooledServer extends AsyncDisposable {
  readonly url: string;
  /** Removes everything that a borrower left. */
  empty(): Promise<void>;
}

/** The environment variable with the pool's socket. Without it there is no pool, and a borrower starts its own server. */
export const POOL_SOCKET = 'WHOA_TEST_SERVERS';

let pool: Awaited<ReturnType<typeof openPool>>;

/** For Vitest: opens the pool before the first test file. */
export async function setup(): Promise<void> {
  pool = await openPool();
  process.env[POOL_SOCKET] = pool.socket;
}

/** For Vitest: ends every server after the last test file. */
export const teardown = async (): Promise<void> => pool[Symbol.asyncDispose]();

/**
 * A connection borrows a server: it sends the kind and receives the URL. Ending it, or a crash of the borrower, returns the
 * server. The pool closes the connection when the server is empty again.
 */
async function openPool(): Promise<AsyncDisposable & { readonly socket: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-servers-'));
  const idle: Record<ServerKind, PooledServer[]> = { redis: [], postgres: [] };
  const borrowers = new Set<Promise<void>>();
  const lend = async (borrower: Socket): Promise<void> => {
    const returned = Promise.race([once(borrower, 'end'), once(borrower, 'close')]);
    const [kind] = (await once(createInterface(borrower), 'line')) as [ServerKind];
    const server = idle[kind].pop() ?? (await start[kind]());
    borrower.write(`${server.url}\n`);
    await returned;
    try {
      await server.empty();
      idle[kind].push(server);
    } catch {
      // A server that cannot be emptied is not lent again.
      await server[Symbol.asyncDispose]();
    }
    borrower.end();
  };
  const listener = createServer({ allowHalfOpen: true }, (borrower) => {
    borrower.on('error', () => {});
    const borrowed = lend(borrower)
      .catch((error: unknown) => {
        borrower.destroy();
        console.error('the server pool could not lend a server:', error);
      })
      .finally(() => borrowers.delete(borrowed));
    borrowers.add(borrowed);
  });
  const socket = join(folder, 'pool');
  listener.listen(socket);
  await once(listener, 'listening');
  return {
    socket,
    async [Symbol.asyncDispose]() {
      listener.close();
      await Promise.all(borrowers);
      await Promise.all([...idle.redis, ...idle.postgres].map((server) => server[Symbol.asyncDispose]()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const start: Record<ServerKind, () => Promise<PooledServer>> = {
  async redis() {
    const server = await startRedis({ appendfsync: 'none' });
    return {
      url: server.url,
      async empty() {
        for (const command of [['FLUSHALL'], ['SCRIPT', 'FLUSH'], ['FUNCTION', 'FLUSH'], ['CONFIG', 'RESETSTAT']]) {
          const reply = await ask(server.port, ...command);
          if (reply !== 'OK') throw new Error(`${command.join(' ')}: ${reply}`);
        }
      },
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
  async postgres() {
    const server = await startPostgres();
    const url = new URL(server.url);
    url.pathname = '/borrowed';
    await query(server.url, 'CREATE DATABASE borrowed');
    return {
      url: url.href,
      async empty() {
        await query(server.url, 'DROP DATABASE borrowed WITH (FORCE)');
        await query(server.url, 'CREATE DATABASE borrowed');
      },
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
};
