import type { TaskStoreConfig } from '@whoa/tasks';
import type { Bare, BenchCase } from './bare.ts';
import { createBarePostgres, startPostgresCase } from './postgres.ts';
import { createBareRedis, startRedisCase } from './redis.ts';

/** Every shared store that is measured. */
export const cases: readonly (() => Promise<BenchCase>)[] = [startRedisCase, startPostgresCase];

/** The bare engine that belongs to a configuration, for a process of its own. */
export function bareOf(config: TaskStoreConfig): Bare {
  if (config.backend === 'redis') return createBareRedis(config);
  if (config.backend === 'postgres') return createBarePostgres(config);
  throw new TypeError(`backend: nobody has written the bare '${config.backend}'`);
}
