import { createRedisStoreKind, type StoreKind } from '@whoa/tasks/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { compileLocale, whyNoLocale } from '../../servers/locale.ts';
import { ask, startRedis } from '../../servers/redis.ts';
import { BUSY_MS, expectContract, expectModel } from './expect-contract.ts';

const stack = new AsyncDisposableStack();
let kind: StoreKind;
/** A server that sorts text by a language, if there is one: sorted sets are in the order of bytes all the same. */
beforeAll(async () => {
  const locale = whyNoLocale === undefined ? stack.use(compileLocale()) : undefined;
  const server = stack.use(await startRedis({ appendfsync: 'none', ...(locale && { env: locale.env }) }));
  expect(await ask(server.port, 'EVAL', `return tostring('a' < 'B')`, '0')).toBe(`${locale !== undefined}`);
  const setField = (...field: [key: string, field: string, value: string]) => ask(server.port, 'HSET', ...field);
  kind = createRedisStoreKind('redis', { url: server.url, timeoutMs: BUSY_MS }, { setField });
});
afterAll(() => stack.disposeAsync());

test('the Redis store keeps the whole contract', () => expectContract(kind));

test('the Redis store agrees with the model in 300 random histories', () => expectModel(kind, 300));
