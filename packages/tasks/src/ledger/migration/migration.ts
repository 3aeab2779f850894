import { SettingsError } from '@whoa/core';
import { migratePostgres } from '../postgres/migrate.ts';
import { FORMAT, OLDEST_FORMAT } from '../rules/format.ts';
import { migrateSqlite } from '../sqlite/migrate.ts';
import { readStoreConfig, type TaskStoreConfig } from '../store-config.ts';
import type { MigratedStore, MigrationMode } from './addition.ts';

/** What a store has, and what this version of Whoa can use. */
export interface MigrationPlan extends MigratedStore {
  /** The oldest format that this version can use. */
  readonly oldest: number;
  /** The newest, which `finish` writes. */
  readonly newest: number;
}

/**
 * Prepares a store for this version of Whoa, by the same configuration or address as `createTaskStore`. `plan` changes
 * nothing in a store that exists. `prepare` creates what is missing; processes of older versions do not notice. `finish`
 * also writes the newest format; after that, older versions are rejected. Each can be repeated.
 *
 * @returns What is still missing, and the format.
 * @throws {@link SettingsError} when the configuration is invalid or names a store in memory;
 * {@link StoreSetupError} when the store cannot be used; {@link StoreBusyError} when it must be tried again later.
 *
 * @example
 * ```ts
 * import { migrateStore } from '@whoa/tasks';
 *
 * const { format, missing } = await migrateStore('sqlite:tasks.db', 'plan');
 * console.log(format, missing);
 * ```
 */
export async function migrateStore(
  config: TaskStoreConfig | string,
  mode: MigrationMode = 'prepare',
): Promise<MigrationPlan> {
  const migrated = await migrate(readStoreConfig(config), mode);
  return { ...migrated, oldest: OLDEST_FORMAT, newest: FORMAT };
}

function migrate(config: TaskStoreConfig, mode: MigrationMode): Promise<MigratedStore> {
  switch (config.backend) {
    case 'memory':
      throw new SettingsError('store', 'a memory store ends with its process and has no data to migrate');
    case 'sqlite':
      return migrateSqlite(config, mode);
    case 'postgres':
      return migratePostgres(config, mode);
  }
}
