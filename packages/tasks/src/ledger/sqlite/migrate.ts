import { existsSync } from 'node:fs';
import { describeAddition, type MigratedStore, type MigrationMode } from '../migration/addition.ts';
import { FORMAT } from '../rules/format.ts';
import type { SqliteStoreOptions } from '../sqlite.ts';
import { Database } from './database.ts';
import { getDefaultPath, prepareFile } from './database-file.ts';

export async function migrateSqlite(
  { file = getDefaultPath(), durability }: SqliteStoreOptions,
  mode: MigrationMode,
): Promise<MigratedStore> {
  if (mode !== 'plan') prepareFile(file);
  else if (!existsSync(file)) return { store: file, missing: [] };
  const synchronous = durability === 'power' ? 'FULL' : 'NORMAL';
  const database = new Database(file, { synchronous, canCreate: mode !== 'plan' });
  try {
    if (mode === 'finish') await database.write(() => database.run(`PRAGMA user_version = ${FORMAT}`));
    const { format } = database;
    if (format === 0) return { store: file, missing: [] };
    return { store: file, format, missing: database.missing().map(describeAddition) };
  } finally {
    database.close();
  }
}
