import { Redis, ReplyError } from 'ioredis';
import { expect, test } from 'vitest';
import { Connection } from '../../packages/tasks/src/stores/redis/connection/connection.ts';
import { borrowRedis } from '../servers/borrow.ts';

test('a connection that the library has abandoned is opened again, and a closed one is not', async () => {
  await using server = await borrowRedis();
  let client: Redis | undefined;
  class Watched extends Redis {
    constructor(options: object) {
      super(options);
      client = this as unknown as Redis;
    }
  }
  const library = {
    Redis: Watched as unknown as typeof Redis,
    ReplyError: ReplyError as new () => Error,
    hasResp3: true,
  };
  const connection = new Connection(library, { port: server.port, enableOfflineQueue: false });
  expect(await connection.waitForReady(10_000)).toBe(true);
  const ended = new Promise((resolve) => client!.once('end', resolve));
  // The client does this itself when the Sentinels name another master while it connects.
  client!.disconnect();
  await ended;
  await expect.poll(() => connection.isReady, { timeout: 10_000 }).toBe(true);
  const closed = new Promise((resolve) => client!.once('end', resolve));
  connection.close();
  await closed;
  expect(client!.status).toBe('end');
});
