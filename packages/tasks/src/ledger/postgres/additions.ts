import type { Addition } from '../migration/addition.ts';

/** What releases have added to the tables since the first, in order. New stores get it too. */
export const ADDITIONS: readonly Addition[] = [];
