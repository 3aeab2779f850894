import type { TaskStoreConfig } from '@whoa/tasks';
import type { Bare, BenchCase } from './bare.ts';
import { createBarePostgres, startPostgresCase } from './postgres.ts';
import { createBareRedis, startRedisCase } from './redis.ts';

const CASES: Readonly<Record<string, () => Promise<BenchCase>>> = {
  redis: startRedisCase,
  postgres: startPostgresCase,
};

/** The shared stores that were named on the command line, or all. */
export const cases: readonly (() => Promise<BenchCase>)[] = chosen(process.argv.slice(2));

function chosen(words: readonly string[]): (() => Promise<BenchCase>)[] {
  const named = Object.keys(CASES).filter((name) => words.includes(name));
  return (named.length > 0 ? named : Object.keys(CASES)).map((name) => CASES[name]!);
}

/** The bare engine that belongs to a configuration, for a separate process. */
export function openBare(config: TaskStoreConfig): Bare {
  if (config.backend === 'redis') return createBareRedis(config);
  if (config.backend === 'postgres') return createBarePostgres(config);
  throw new TypeError(`backend: nobody has written the bare '${config.backend}'`);
}
