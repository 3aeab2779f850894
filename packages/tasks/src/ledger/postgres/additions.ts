import type { Addition } from '../migration/addition.ts';
import { AFTER_RESERVED, LIMITS, OFFERED_SUSPECTS } from '../rules/rules.ts';

/** What releases have added to the tables since the first, in order. New stores get it too. */
export const ADDITIONS: readonly Addition[] = [
  // Which engine delivers an agent.
  { table: 'engines', columns: 'agent text COLLATE "C" PRIMARY KEY, engine text COLLATE "C" NOT NULL' },
  // The feed: see `sql/feed.sql`. `seen`: every event that this snapshot shows is done. `upto`, `done`: the window that is being
  // read, and the last event of it that is done.
  {
    table: 'feed',
    columns: `part smallint, xid xid8 DEFAULT pg_current_xact_id(), id bigint GENERATED ALWAYS AS IDENTITY,
      event uuid NOT NULL DEFAULT gen_random_uuid(), kind text COLLATE "C" NOT NULL, tenant text COLLATE "C" NOT NULL,
      task text COLLATE "C", conversation text COLLATE "C", at float8 NOT NULL, agent text, status text, code text, question text,
      PRIMARY KEY (part, xid, id)`,
    storage: 'autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.5',
  },
  {
    table: 'cursors',
    columns: `part smallint, consumer text COLLATE "C", kinds text[] NOT NULL, version int NOT NULL DEFAULT 0,
      reader text COLLATE "C", until float8 NOT NULL DEFAULT 0, seen_at float8 NOT NULL,
      seen pg_snapshot NOT NULL DEFAULT pg_current_snapshot(), upto pg_snapshot, done bigint NOT NULL DEFAULT 0,
      missed_since float8, PRIMARY KEY (part, consumer)`,
    storage: 'fillfactor = 20, autovacuum_vacuum_threshold = 200',
  },
  { table: 'totals', columns: 'name text COLLATE "C" PRIMARY KEY, value float8 NOT NULL', storage: 'fillfactor = 50' },
  // The kinds that consumers want, and the server that counts the transactions of the feed.
  { column: 'feeds', table: 'layout', type: "text NOT NULL DEFAULT ''" },
  { column: 'cluster', table: 'layout', type: 'text' },
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
