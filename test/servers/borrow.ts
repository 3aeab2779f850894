import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { POOL_SOCKET, type ServerKind } from './pool.ts';
import { startPostgres } from './postgres.ts';
import { startRedis } from './redis.ts';

/** An empty server for tests that neither stop nor configure it. Other tests start their own. */
export interface BorrowedServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
}

export const borrowRedis = (): Promise<BorrowedServer> => borrow('redis', () => startRedis({ appendfsync: 'none' }));

export const borrowPostgres = (): Promise<BorrowedServer> => borrow('postgres', () => startPostgres());

async function borrow(
  kind: ServerKind,
  startOwn: () => Promise<AsyncDisposable & { url: string }>,
): Promise<BorrowedServer> {
  const pool = process.env[POOL_SOCKET];
  if (pool === undefined) {
    const own = await startOwn();
    return toBorrowed(own.url, async () => own[Symbol.asyncDispose]());
  }
  const socket = connect(pool);
  socket.write(`${kind}\n`);
  const lines = createInterface(socket);
  const [url] = (await Promise.race([once(lines, 'line'), once(lines, 'close').then(() => [])])) as [string?];
  if (url === undefined) throw new Error(`the server pool did not lend a ${kind} server; its error is above`);
  return toBorrowed(url, async () => {
    const closed = once(socket, 'close');
    socket.end();
    await closed;
  });
}

const toBorrowed = (url: string, end: () => Promise<void>): BorrowedServer => ({
  url,
  port: Number(new URL(url).port),
  [Symbol.asyncDispose]: end,
});
