import type { Addition } from '../migration/addition.ts';
import { AFTER_RESERVED, OFFERED_SUSPECTS } from '../rules/rules.ts';

/** What releases have added to the tables since the first, in order. New stores get it too. */
export const ADDITIONS: readonly Addition[] = [
  { table: 'engines', columns: 'agent TEXT PRIMARY KEY, engine TEXT NOT NULL' },
  // `AUTOINCREMENT`: a number that a purge freed must not be used again, behind the cursors.
  {
    table: 'feed',
    columns: 'number INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, conversation TEXT, record TEXT NOT NULL',
  },
  { table: 'cursors', columns: 'consumer TEXT PRIMARY KEY, record TEXT NOT NULL' },
  { table: 'totals', columns: 'name TEXT PRIMARY KEY, value REAL NOT NULL' },
  { column: 'offeredAt', table: 'tasks', type: 'REAL' },
  {
    index: 'tasks_offered',
    on: `tasks (offeredAt, stageAt) WHERE stage = 'ready' AND readyQueue >= '${OFFERED_SUSPECTS}' AND readyQueue < '${AFTER_RESERVED}'`,
  },
];
