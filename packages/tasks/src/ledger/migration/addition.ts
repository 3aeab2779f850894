/** Whose running tasks are limited. */
export type Limit = 'tenant' | 'agent';

/** A table, a column or an index that a release adds to the tables. Older releases must not notice it. */
export type Addition =
  | {
      readonly table: string;
      readonly columns: string;
      /** How Postgres stores it. */
      readonly storage?: string;
    }
  | { readonly column: string; readonly table: string; readonly type: string }
  | {
      readonly index: string;
      /** A table and its columns: `tasks (tenant)`. */
      readonly on: string;
      /** Only clients with this limit need it. */
      readonly limit?: Limit;
    };

/** What a migration does to a store. */
export type MigrationMode = 'plan' | 'prepare' | 'finish';

/** What a migration found in a store, after its changes. */
export interface MigratedStore {
  /** Which store, without its password. */
  readonly store: string;
  /** The format of its data. Left out if there is no store yet. */
  readonly format?: number;
  /** What this version of Whoa would add: columns, indexes, functions. */
  readonly missing: readonly string[];
}

export function describeAddition(addition: Addition): string {
  if ('columns' in addition) return `table ${addition.table}`;
  return 'column' in addition ? `column ${addition.table}.${addition.column}` : `index ${addition.index}`;
}
