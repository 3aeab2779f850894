import { createRedisStoreKind } from '@whoa/tasks/testing';
import { test } from 'vitest';
import { borrowRedis } from '../../servers/borrow.ts';
import { ask } from '../../servers/redis.ts';
import { BUSY_MS, expectContract } from './expect-contract.ts';

test('the Redis store keeps the whole contract', async () => {
  await using server = await borrowRedis();
  const setField = (...field: [key: string, field: string, value: string]) => ask(server.port, 'HSET', ...field);
  await expectContract(createRedisStoreKind('redis', { url: server.url, timeoutMs: BUSY_MS }, { setField }));
});
