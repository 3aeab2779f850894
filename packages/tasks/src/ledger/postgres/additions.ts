import type { Addition } from '../migration/addition.ts';
import { AFTER_RESERVED, LIMITS, OFFERED_SUSPECTS } from '../rules/rules.ts';

/** What releases have added to the tables since the first, in order. New stores get it too. */
export const ADDITIONS: readonly Addition[] = [
  // Which engine delivers an agent.
  { table: 'engines', columns: 'agent text COLLATE "C" PRIMARY KEY, engine text COLLATE "C" NOT NULL' },
  { column: 'offered_at', table: 'tasks', type: 'float8' },
  { column: 'offers_told_at', table: 'store_state', type: "float8 NOT NULL DEFAULT '-Infinity'" },
  { index: 'held_tasks_by_tenant', on: "tasks (tenant) WHERE stage = 'held' AND tenant IS NOT NULL", limit: 'tenant' },
  { index: 'held_tasks_by_agent', on: "tasks (agent) WHERE stage = 'held' AND agent IS NOT NULL", limit: 'agent' },
  {
    index: 'tasks_offered',
    on: `tasks (coalesce(offered_at + ${LIMITS.repeatedOfferMs - LIMITS.lostOfferMs}, stage_at))
      WHERE stage = 'ready' AND ready_queue >= '${OFFERED_SUSPECTS}' AND ready_queue < '${AFTER_RESERVED}'`,
  },
];
