import { createRedisStoreKind } from '@whoa/tasks/testing';
import { Cluster } from 'ioredis';
import { test } from 'vitest';
import { startRedisCluster } from '../../servers/redis.ts';
import { BUSY_MS, expectContract } from './expect-contract.ts';

test('the Redis store keeps the whole contract on a Cluster', async () => {
  await using cluster = await startRedisCluster();
  const nodes = new Cluster([...cluster.urls]);
  const setField = (key: string, field: string, value: string) => nodes.hset(key, field, value);
  const options = { url: cluster.urls, cluster: true, timeoutMs: BUSY_MS };
  await expectContract(createRedisStoreKind('redis cluster', options, { setField }));
  nodes.disconnect();
});
