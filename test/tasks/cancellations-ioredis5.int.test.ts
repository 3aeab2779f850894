// BullMQ users have ioredis 5, which supports RESP2 only. The oldest version of the peer range must do all the same things.
import { Redis } from 'ioredis-v5';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createCancellationStore } from '../../packages/tasks/src/cancellations/cancellation-store.ts';
import { type BorrowedServer, borrowRedis } from '../servers/borrow.ts';
import { testCancellationStore } from './cancellation-cases.ts';

vi.mock('ioredis', () => import('ioredis-v5'));

describe('on ioredis 5', () => {
  let server: BorrowedServer;
  beforeAll(async () => void (server = await borrowRedis()));
  afterAll(() => server[Symbol.asyncDispose]());

  testCancellationStore('redis', {
    config: () => ({ backend: 'redis', url: server.url, prefix: 'mine' }),
    async expire(taskId) {
      const client = new Redis(server.url);
      await client.pexpireat(`mine:cancellation:${taskId}`, 1);
      client.disconnect();
    },
    isShared: true,
  });

  test('the connections are those of ioredis 5', async () => {
    const connect = vi.spyOn(Redis.prototype, 'connect');
    await using store = createCancellationStore({ backend: 'redis', url: server.url });
    await store.register('one');
    expect(connect).toHaveBeenCalled();
  });
});
