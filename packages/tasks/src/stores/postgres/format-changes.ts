import type { FormatChange } from '../../migration/migrator.ts';

/** One step of a migration. `whoa.` stands for the schema of the tables. */
export type PostgresStep = { readonly name: string } & (
  | {
      /** Changes a table, in a moment. Must do nothing the second time: `ADD COLUMN IF NOT EXISTS`. */
      readonly alter: string;
    }
  | {
      /** Creates an index without blocking writers: `ON whoa.tasks (tenant)`. */
      readonly index: { readonly name: string; readonly definition: string };
    }
  | {
      /** Changes at most `$2` rows whose key is after `$1`. Returns the last key as `position`, and `rows`, if there were any. */
      readonly fill: string;
    }
);

/** How the tables get from each format to the next. */
export const FORMAT_CHANGES: readonly FormatChange<PostgresStep>[] = [];
