import type { MigratedStore, MigrationMode } from '../../migration/addition.ts';
import { Calls } from './calls.ts';
import type { Reply } from './connection/connection.ts';
import type { OperationName } from './operations.ts';
import { getGenerations, PREFIX, type RedisStoreOptions, toTag } from './options.ts';

/** Nothing is ever missing: connecting writes the layout, and a field of a key exists once it is written. */
export async function migrateRedis(options: RedisStoreOptions, mode: MigrationMode): Promise<MigratedStore> {
  const { prefix = PREFIX } = options;
  const generations = getGenerations(options);
  const tags = Array.from({ length: generations.at(-1)! }, (_, shard) => toTag(prefix, shard));
  const calls = new Calls(options, { given: {}, use: () => {} });
  const call = (name: OperationName, tag: string): Promise<Reply> =>
    calls.call(name, tag, (format) => [0, 0, 0, `${format} 0 0 0 ${generations.join(',')}`]);
  try {
    // The first shard comes last: clients that connect read the format there.
    if (mode === 'finish') {
      for (const tag of tags.toReversed()) await call('writeFormat', tag);
      for (const tag of tags) await calls.removeOtherLibraries(tag);
    }
    const formats = await Promise.all(tags.map((tag) => call('readFormat', tag)));
    return { store: `Redis, prefix '${prefix}'`, format: Math.min(...formats.map(Number)), missing: [] };
  } finally {
    await calls[Symbol.asyncDispose]();
  }
}
