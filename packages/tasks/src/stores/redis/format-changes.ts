import type { FormatChange } from '../../migration/migrator.ts';

/** One step of a migration. */
export interface RedisStep {
  readonly name: string;
  /**
   * Lua that changes about `size` keys of the shard `tag`, after `position` (empty at first). It adds to `rows`, and sets
   * `rest` to where the next part starts, unless there is none.
   */
  readonly fill: string;
}

/** How the keys get from each format to the next. */
export const FORMAT_CHANGES: readonly FormatChange<RedisStep>[] = [];
