// What a bus costs its server for each word that a reader sees: the processor time of Redis, and what Postgres spends more
// when it is the bus itself. Dense: 4 workers with 25 tasks each; sparse: 20 workers with one task each; 4 reading processes.
//   npm run bench -- bus-cpu [--json]
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { TaskStoreConfig } from '@whoa/tasks';
import { startPostgres } from '../test/servers/postgres.ts';
import { startRedis } from '../test/servers/redis.ts';
import { percentile, report } from './measure/measure.ts';
import { createTalking, startWords, threadsCpuMs } from './measure/words.ts';

const HERE = join(import.meta.dirname, '..');
const READING = 4;
const WARM_UP_MS = 3_000;
const MEASURED_MS = 5_000;

const SHAPES = {
  dense: { processes: 4, workers: 1, tasks: 100, goals: { redis: 10, postgres: 25 } },
  // Five workers share a process: a machine has not twenty processors.
  sparse: { processes: 4, workers: 5, tasks: 20, goals: { redis: 75, postgres: 300 } },
};
type Shape = keyof typeof SHAPES;

interface Cost {
  readonly redisMs: number;
  readonly postgresMs: number;
  readonly words: number;
  readonly p50: number;
  readonly p95: number;
}

async function measure(shape: Shape, bus: 'redis' | 'postgres'): Promise<Cost> {
  const { processes, workers, tasks } = SHAPES[shape];
  await using postgres = await startPostgres({ durable: true });
  await using redis = await startRedis({ appendfsync: 'none' });
  const config: TaskStoreConfig = {
    backend: 'postgres',
    url: postgres.url,
    ...(bus === 'redis' && { bus: redis.url }),
  };
  const ids = await createTalking(HERE, config, tasks);
  using children = new DisposableStack();
  const start = async (part: 'talk' | 'read') =>
    children.use(await startWords({ folder: HERE, part, config, workers }));
  const readers = await Promise.all(Array.from({ length: READING }, () => start('read')));
  await Promise.all(Array.from({ length: processes }, () => start('talk')));
  for (const [i, reader] of readers.entries()) reader.send({ ids: ids.filter((_, k) => k % READING === i) });
  await wait(WARM_UP_MS);
  const ask = () => Promise.all(readers.map((reader) => reader.figures()));
  await ask();
  const cpu = async (): Promise<[number, number]> => [threadsCpuMs(redis.process.pid!), await postgres.cpuMs()];
  const before = await cpu();
  await wait(MEASURED_MS);
  const after = await cpu();
  const figures = await ask();
  const delays = figures.flatMap((one) => one.delays);
  return {
    redisMs: after[0] - before[0],
    postgresMs: after[1] - before[1],
    words: figures.reduce((sum, one) => sum + one.words, 0),
    p50: percentile(delays, 0.5),
    p95: percentile(delays, 0.95),
  };
}

for (const shape of ['dense', 'sparse'] as const) {
  const { goals } = SHAPES[shape];
  const redis = await measure(shape, 'redis');
  const postgres = await measure(shape, 'postgres');
  const spared = (redis.postgresMs / redis.words) * 1_000;
  const costs = [
    ['redis', (redis.redisMs / redis.words) * 1_000, redis],
    ['postgres', (postgres.postgresMs / postgres.words) * 1_000 - spared, postgres],
  ] as const;
  for (const [bus, ours, { words, p50, p95 }] of costs)
    report({
      name: `µs of the bus for each word that is shown (${bus}, ${shape})`,
      ours,
      bare: goals[bus],
      goal: { atMost: 1 },
      more: { wordsPerSecond: words / (MEASURED_MS / 1_000), p50, p95, ledger: spared },
    });
}
