import type { Addition } from '../migration/addition.ts';
import { AFTER_RESERVED, OFFERED_SUSPECTS } from '../rules/rules.ts';

/** What releases have added to the tables since the first, in order. New stores get it too. */
export const ADDITIONS: readonly Addition[] = [
  { table: 'engines', columns: 'agent TEXT PRIMARY KEY, engine TEXT NOT NULL' },
  { column: 'offeredAt', table: 'tasks', type: 'REAL' },
  {
    index: 'tasks_offered',
    on: `tasks (offeredAt, stageAt) WHERE stage = 'ready' AND readyQueue >= '${OFFERED_SUSPECTS}' AND readyQueue < '${AFTER_RESERVED}'`,
  },
];
