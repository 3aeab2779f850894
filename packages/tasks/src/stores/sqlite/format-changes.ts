import type { FormatChange } from '../../migration/migrator.ts';
import type { Database } from './database.ts';

/** One step of a migration. */
export interface SqliteStep {
  readonly name: string;
  /**
   * Changes about `PART_ROWS` rows whose key is after `position`, in one transaction. Returns the last key, or no `position`
   * when there were none.
   */
  run(database: Database, position: string): { readonly position?: string; readonly rows: number };
}

/** How the tables get from each format to the next. */
export const FORMAT_CHANGES: readonly FormatChange<SqliteStep>[] = [];
