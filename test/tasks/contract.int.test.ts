import {
  checkStoreModel,
  createRedisStoreKind,
  formatContractReports,
  memoryStoreKind,
  runStoreContract,
  sqliteStoreKind,
} from '@whoa/tasks/testing';
import * as fc from 'fast-check';
import { Cluster } from 'ioredis';
import { expect, test } from 'vitest';
import { startPostgres } from '../servers/postgres.ts';
import { postgresStoreKind } from '../servers/postgres-kind.ts';
import { ask, startRedis, startRedisCluster } from '../servers/redis.ts';

/** The contract is about what a store does, not how fast: a busy machine may take this long for one request. */
const BUSY_MS = 60_000;

test('every store keeps the whole contract, and one table says so', { timeout: 20 * BUSY_MS }, async () => {
  await using redis = await startRedis({ appendfsync: 'everysec' });
  await using cluster = await startRedisCluster();
  await using postgres = await startPostgres();
  const nodes = new Cluster([...cluster.urls]);
  const setInCluster = (key: string, field: string, value: string): Promise<number> => nodes.hset(key, field, value);
  const kinds = [
    memoryStoreKind,
    sqliteStoreKind,
    createRedisStoreKind(
      'redis',
      { url: redis.url, timeoutMs: BUSY_MS },
      { setField: (...field) => ask(redis.port, 'HSET', ...field) },
    ),
    createRedisStoreKind(
      'redis cluster',
      { url: cluster.urls, cluster: true, timeoutMs: BUSY_MS },
      { setField: setInCluster },
    ),
    postgresStoreKind(postgres.url),
  ];
  const reports: Awaited<ReturnType<typeof runStoreContract>>[] = [];
  for (const kind of kinds) reports.push(await runStoreContract(kind));
  nodes.disconnect();
  console.log(formatContractReports(reports));
  expect(reports.flatMap(({ failed }) => failed)).toEqual([]);
});

test('thousands of random histories agree with the model', async () => {
  await using postgres = await startPostgres();
  await checkStoreModel(fc, memoryStoreKind, { runs: 5_000, seed: 2 });
  await checkStoreModel(fc, sqliteStoreKind, { runs: 300, seed: 2 });
  await checkStoreModel(fc, postgresStoreKind(postgres.url), { runs: 100, seed: 2 });
});
