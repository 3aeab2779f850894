export type Query = (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

/** The tables of a store as the checks see them: `t` tasks, `w` waiting, `c` conversations, and their details. */
type Views = Readonly<
  Record<'t' | 'w' | 'c' | 's' | 'q' | 'inputs_' | 'commands_' | 'journal_' | 'sent_' | 'history_', string>
>;

const POSTGRES: Views = {
  t: `SELECT id, tenant, agent, conversation, status, stage, policy, ended_at AS ended, session, claim, worker, ready_queue,
    CASE WHEN status = 'cancelling' THEN CASE WHEN stop_undo THEN '*!' || agent ELSE '*' END
      WHEN attempts >= 2 THEN '*?' || agent ELSE agent END AS due_queue,
    CASE WHEN has_pending_orders THEN 1 ELSE 0 END AS has_pending_orders, input_owner, journal_bytes, commands_waiting AS commands,
    coalesce(questions_open, 0) AS open, coalesce(questions_pending, 0) AS pending FROM whoa.tasks`,
  w: 'SELECT tenant, conversation, one COLLATE "C" AS id FROM whoa.conversations, unnest(waiting) AS one',
  c: `SELECT tenant, conversation, current COLLATE "C" AS current, debouncing COLLATE "C" AS debouncing, history_bytes
    FROM whoa.conversations`,
  s: 'SELECT id, expires_at AS expires FROM whoa.sessions',
  q: 'SELECT task, id, tenant, state FROM whoa.questions',
  inputs_: 'SELECT owner FROM whoa.inputs',
  commands_: 'SELECT task FROM whoa.commands',
  journal_: 'SELECT task, octet_length(event::text) AS bytes FROM whoa.journal',
  sent_: 'SELECT task FROM whoa.command_nonces',
  history_: 'SELECT tenant, conversation, octet_length(message::text) AS bytes FROM whoa.history',
};

const SQLITE: Views = {
  t: `SELECT id, tenant, agent, conversation, status, stage, record ->> 'policy' AS policy, endedAt AS ended,
    record ->> 'session' AS session, record ->> 'claim' AS claim, record ->> 'worker' AS worker, readyQueue AS ready_queue,
    CASE WHEN status = 'cancelling' THEN CASE WHEN record ->> '$.stop.undo' THEN '*!' || agent ELSE '*' END
      WHEN record ->> 'attempts' >= 2 THEN '*?' || agent ELSE agent END AS due_queue,
    coalesce(hasPendingOrders, 0) AS has_pending_orders, record ->> 'inputOwner' AS input_owner, record ->> 'journalBytes' AS journal_bytes,
    json_array_length(record, '$.commands') AS commands, coalesce(record ->> '$.questionCounts.open', 0) AS open,
    coalesce(record ->> '$.questionCounts.pending', 0) AS pending FROM tasks`,
  w: "SELECT tenant, conversation, one.value AS id FROM conversations, json_each(record, '$.waiting') AS one",
  c: `SELECT tenant, conversation, record ->> 'current' AS current, record ->> 'debouncing' AS debouncing,
    record ->> 'historyBytes' AS history_bytes FROM conversations`,
  s: 'SELECT id, expiresAt AS expires FROM worker_sessions',
  q: 'SELECT task, id, tenant, state FROM questions',
  inputs_: 'SELECT owner FROM inputs',
  commands_: "SELECT tasks.id AS task FROM tasks, json_each(record, '$.commands')",
  journal_: 'SELECT id AS task, length(CAST(event AS BLOB)) AS bytes FROM journal',
  sent_: 'SELECT id AS task FROM command_nonces',
  history_: 'SELECT tenant, conversation, length(CAST(message AS BLOB)) AS bytes FROM history',
};

const SAME = 'x.tenant = t.tenant AND x.conversation = t.conversation';

/** Queries that must never return a row. */
const CHECKS: Readonly<Record<string, string>> = {
  'is live and in no stage, or has ended and is in one':
    'SELECT id FROM t WHERE (ended IS NULL AND stage IS NULL) OR (ended IS NOT NULL AND stage IS NOT NULL)',
  'has a status that does not fit its end': `SELECT id FROM t
    WHERE (ended IS NULL AND status NOT IN ('init', 'running', 'cancelling')) OR (ended IS NOT NULL AND status IN ('init', 'running', 'cancelling'))`,
  'is queued and does not wait once in its conversation': `SELECT id FROM t WHERE stage = 'queued'
    AND (SELECT count(*) FROM w AS x WHERE x.id = t.id AND ${SAME}) <> 1`,
  'waits in a conversation and is not queued':
    "SELECT id FROM w WHERE id NOT IN (SELECT id FROM t WHERE stage = 'queued')",
  'is live and not in its conversation': `SELECT id FROM t WHERE ended IS NULL AND conversation IS NOT NULL AND stage <> 'queued'
    AND NOT EXISTS (SELECT 1 FROM c AS x WHERE ${SAME} AND t.id IN (x.current, x.debouncing))`,
  'is current and has ended, waits or is still held back': `SELECT x.current FROM c AS x WHERE x.current IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM t WHERE t.id = x.current AND ${SAME} AND stage IN ('delayed', 'ready', 'held', 'parked') AND policy IS NULL)`,
  'is debouncing and not held back': `SELECT x.debouncing FROM c AS x WHERE x.debouncing IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM t WHERE t.id = x.debouncing AND ${SAME} AND stage = 'delayed' AND policy IS NOT NULL)`,
  'has a policy and is not debouncing': `SELECT id FROM t WHERE policy IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM c AS x WHERE ${SAME} AND x.debouncing = t.id)`,
  'waits behind no current task':
    'SELECT w.id FROM w JOIN c ON c.tenant = w.tenant AND c.conversation = w.conversation WHERE c.current IS NULL',
  'is ready in another ready queue than its own':
    "SELECT id FROM t WHERE stage = 'ready' AND (ready_queue IS NULL OR ready_queue <> due_queue)",
  'is held by no session that can expire': `SELECT id FROM t WHERE stage = 'held'
    AND (claim IS NULL OR worker IS NULL OR NOT EXISTS (SELECT 1 FROM s WHERE s.id = t.session AND expires IS NOT NULL))`,
  'is live, has a session and is not held':
    "SELECT id FROM t WHERE ended IS NULL AND session IS NOT NULL AND stage <> 'held'",
  'has pending orders and is not held':
    "SELECT id FROM t WHERE has_pending_orders = 1 AND (stage IS NULL OR stage <> 'held')",
  'has another number of commands than it counts':
    'SELECT id FROM t WHERE commands <> (SELECT count(*) FROM commands_ WHERE task = t.id)',
  'has ended and has commands': 'SELECT id FROM t WHERE ended IS NOT NULL AND commands > 0',
  'is gone or has ended and left commands':
    'SELECT task FROM commands_ WHERE task NOT IN (SELECT id FROM t WHERE ended IS NULL)',
  'is parked and has something to do, or waits for nothing':
    "SELECT id FROM t WHERE stage = 'parked' AND (status <> 'running' OR open = 0 OR pending > 0 OR commands > 0)",
  'has other questions than it counts': `SELECT id FROM t
    WHERE open <> (SELECT count(*) FROM q WHERE q.task = t.id AND state = 'open')
    OR pending <> (SELECT count(*) FROM q WHERE q.task = t.id AND state IN ('answered', 'unread'))`,
  'has ended, or is being stopped, and has an open question':
    "SELECT id FROM t WHERE (ended IS NOT NULL AND open + pending > 0) OR (status = 'cancelling' AND open > 0)",
  'is gone and left questions, or has those of another tenant': `SELECT task FROM q
    WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.id = q.task AND t.tenant = q.tenant)`,
  'is gone and left inputs': 'SELECT owner FROM inputs_ WHERE owner NOT IN (SELECT input_owner FROM t)',
  'has no input': "SELECT id FROM t WHERE input_owner <> '' AND input_owner NOT IN (SELECT owner FROM inputs_)",
  'is gone and left a journal': 'SELECT task FROM journal_ WHERE task NOT IN (SELECT id FROM t)',
  'is gone and left nonces': 'SELECT task FROM sent_ WHERE task NOT IN (SELECT id FROM t)',
  'has another journal than it counts': `SELECT id FROM t
    WHERE journal_bytes <> (SELECT coalesce(sum(bytes), 0) FROM journal_ WHERE task = t.id)`,
  'is a history of no conversation, or of another size': `SELECT conversation FROM (
      SELECT tenant, conversation, history_bytes AS bytes FROM c
      UNION ALL SELECT tenant, conversation, -bytes FROM history_
    ) AS x GROUP BY tenant, conversation HAVING sum(bytes) <> 0`,
};

/** Checks for SQLite only: it stores a record and columns for finding it. */
const SQLITE_CHECKS: Readonly<Record<string, string>> = {
  'has columns that differ from its record': `SELECT id FROM tasks WHERE status <> record ->> 'status'
    OR stage IS NOT record ->> 'stage' OR endedAt IS NOT record ->> 'endedAt' OR stageAt IS NOT record ->> 'stageAt'
    OR priority IS NOT record ->> 'priority' OR (stage = 'held') <> (session IS NOT NULL)
    OR (stage = 'held' AND session IS NOT record ->> 'session')`,
  'is ready in a ready queue that is closed for no reason': `SELECT id FROM tasks AS t WHERE stage = 'ready'
    AND NOT EXISTS (SELECT 1 FROM ready_queues WHERE ready_queues.agent = t.readyQueue AND ready_queues.tenant = t.tenant)
    AND NOT EXISTS (SELECT 1 FROM paused) AND NOT EXISTS (SELECT 1 FROM tasks AS o WHERE o.tenant = t.tenant AND o.stage = 'held')`,
};

function toSql(views: Views, checks: Readonly<Record<string, string>>): string {
  const tables = Object.entries(views).map(([name, sql]) => `${name} AS (${sql})`);
  const found = Object.entries(checks).map(
    ([problem, sql]) =>
      `SELECT '${problem}' AS problem, found.* FROM (${sql.replace(/^SELECT (\S+)/, 'SELECT $1 AS id')}) AS found`,
  );
  return `WITH ${tables.join(', ')} ${found.join(' UNION ALL ')}`;
}

const POSTGRES_SQL = toSql(POSTGRES, CHECKS);
const SQLITE_SQL = toSql(SQLITE, { ...CHECKS, ...SQLITE_CHECKS });

/** Finds contradictions in a Postgres schema. */
export async function findPostgresProblems(query: Query): Promise<readonly string[]> {
  return (await query(POSTGRES_SQL)).map(toText);
}

/** Finds contradictions in a SQLite file. */
export async function findSqliteProblems(query: Query): Promise<readonly string[]> {
  return (await query(SQLITE_SQL)).map(toText);
}

function toText({ id, problem }: Readonly<Record<string, unknown>>): string {
  return `${String(id)} ${String(problem)}`;
}
