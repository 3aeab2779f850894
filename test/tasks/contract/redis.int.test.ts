import { createRedisStoreKind, type StoreKind } from '@whoa/tasks/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { compileLocale, whyNoLocale } from '../../servers/locale.ts';
import { ask, type RedisServer, startRedis } from '../../servers/redis.ts';
import { BUSY_MS, expectContract, expectModel } from './expect-contract.ts';

const stack = new AsyncDisposableStack();
let server: RedisServer;
let kind: StoreKind;
/** A server that sorts text by a language, if the locale exists: sorted sets must still be in byte order. */
beforeAll(async () => {
  const locale = whyNoLocale === undefined ? stack.use(compileLocale()) : undefined;
  server = stack.use(await startRedis({ appendfsync: 'none', ...(locale && { env: locale.env }) }));
  const setField = (...field: [key: string, field: string, value: string]) => ask(server.port, 'HSET', ...field);
  kind = createRedisStoreKind('redis', { url: server.url, timeoutMs: BUSY_MS }, { setField });
});
afterAll(() => stack.disposeAsync());

test.skipIf(whyNoLocale)('the server sorts text by a language', async () => {
  expect(await ask(server.port, 'EVAL', `return tostring('a' < 'B')`, '0')).toBe('true');
});

test('the Redis store keeps the whole contract', () => expectContract(kind));

test('the Redis store agrees with the model in 300 random histories', () => expectModel(kind, 300));
