import { createRedisStoreKind } from '@whoa/tasks/testing';
import { expect, test } from 'vitest';
import { compileLocale, whyNoLocale } from '../../servers/locale.ts';
import { ask, startRedis } from '../../servers/redis.ts';
import { BUSY_MS, expectContract } from './expect-contract.ts';

/** A server that sorts text by a language, if there is one: sorted sets are in the order of bytes all the same. */
test('the Redis store keeps the whole contract', async () => {
  using locale = whyNoLocale === undefined ? compileLocale() : undefined;
  await using server = await startRedis({ appendfsync: 'none', ...(locale && { env: locale.env }) });
  expect(await ask(server.port, 'EVAL', `return tostring('a' < 'B')`, '0')).toBe(`${locale !== undefined}`);
  const setField = (...field: [key: string, field: string, value: string]) => ask(server.port, 'HSET', ...field);
  await expectContract(createRedisStoreKind('redis', { url: server.url, timeoutMs: BUSY_MS }, { setField }));
});
