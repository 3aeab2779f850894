-- The tables. `whoa.` stands for their schema, `fn.` for that of the functions. Times are milliseconds since 1970 on
-- the database's clock. Messages are `json`, never `jsonb`: they must come back unchanged, and `jsonb` refuses
-- `\u0000`.

-- The format that every client must agree on, in one row; the versions of the functions.
CREATE TABLE whoa.layout (format int NOT NULL);
-- What the store holds for all clients.
CREATE TABLE whoa.settings (name text PRIMARY KEY, value float8 NOT NULL);
CREATE TABLE whoa.functions (version int PRIMARY KEY, digest text NOT NULL);

-- Names are always compared byte by byte: with two collations no index would be used. Where a task is found (ready in
-- its ready queue, later, queued, held by a session, with pending orders) follows from its columns: one row to lock, and nothing else
-- that could disagree. Beats do not touch it.
CREATE TABLE whoa.tasks (
  id text COLLATE "C" PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL, agent text COLLATE "C" NOT NULL, conversation text COLLATE "C", title text, key text, nonce text,
  superseded text[], steered text, priority int NOT NULL, not_before float8, deadline float8,
  status text COLLATE "C" NOT NULL, stage text COLLATE "C", stage_at float8, ready_queue text COLLATE "C", policy text,
  epoch int NOT NULL DEFAULT 0, attempts int NOT NULL DEFAULT 0, charges int NOT NULL DEFAULT 0,
  crashes int NOT NULL DEFAULT 0, lost_claim text COLLATE "C", is_charged boolean NOT NULL DEFAULT false,
  worker text, session text COLLATE "C", claim text COLLATE "C", released text COLLATE "C",
  has_pending_orders boolean NOT NULL DEFAULT false,
  created_at float8 NOT NULL, started_at float8, ended_at float8,
  stop_level text, stop_reason json, stop_abort_at float8, stop_kill_at float8, stop_undo boolean,
  commands_sent int NOT NULL DEFAULT 0, commands_waiting int NOT NULL DEFAULT 0, order_number int NOT NULL DEFAULT 0,
  position int NOT NULL DEFAULT 0, journal_bytes float8 NOT NULL DEFAULT 0, activity text,
  -- Owner of its inputs: its id, or a separate name once they were passed on.
  input_owner text COLLATE "C" NOT NULL, context text, traceparent text, started_by text,
  -- Its sender may not answer: it withdraws no questions.
  keeps_questions boolean NOT NULL DEFAULT false,
  -- Of a task that has asked: open questions, and those that its worker must act on.
  questions_open int, questions_pending int,
  outcome json, outcome_reason json, outcome_complete boolean
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
-- "… IS NOT NULL" leaves no row out. It keeps statements that do not name the column from using the index: a plan made while
-- all indexes are empty might otherwise choose the wrong one, and read all of it later.
CREATE INDEX tasks_by_status ON whoa.tasks (tenant, status, created_at, id) WHERE status IS NOT NULL;
CREATE INDEX tasks_by_conversation ON whoa.tasks (tenant, conversation, created_at, id) WHERE conversation IS NOT NULL;
CREATE INDEX tasks_by_background ON whoa.tasks (tenant, (regexp_replace(key, '/[^/]*$', '')), created_at, id)
  WHERE key LIKE 'background/%' /*BACKGROUND_PATTERN*/ AND conversation IS NULL;
CREATE INDEX tasks_ended ON whoa.tasks (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX tasks_ready ON whoa.tasks (ready_queue, tenant, priority DESC, stage_at, id) WHERE stage = 'ready';
CREATE INDEX tasks_delayed ON whoa.tasks (stage_at) WHERE stage = 'delayed';
CREATE INDEX tasks_overdue ON whoa.tasks (deadline, id) WHERE deadline IS NOT NULL AND (status = 'init' OR stage = 'parked');
CREATE INDEX tasks_held ON whoa.tasks (session, has_pending_orders) WHERE stage = 'held' AND session IS NOT NULL;

CREATE TABLE whoa.inputs (
  owner text COLLATE "C", position int, input json NOT NULL, PRIMARY KEY (owner, position)
);
CREATE TABLE whoa.commands (
  task text COLLATE "C", number int, steered text, command json NOT NULL, PRIMARY KEY (task, number)
);
-- Nonces, to recognise repeated commands.
CREATE TABLE whoa.command_nonces (
  task text COLLATE "C", nonce text COLLATE "C", number int NOT NULL, PRIMARY KEY (task, nonce)
);
-- What tasks ask. `asked` and `answer` are of users, and never taken apart here.
CREATE TABLE whoa.questions (
  task text COLLATE "C", id text COLLATE "C", tenant text COLLATE "C" NOT NULL, state text COLLATE "C" NOT NULL,
  asked json NOT NULL, asked_at float8 NOT NULL, expires_at float8, answer json, answered_at float8, nonce text COLLATE "C",
  closed_why text COLLATE "C", closed_at float8, PRIMARY KEY (task, id)
);
CREATE INDEX questions_open ON whoa.questions (tenant, asked_at, id) WHERE state = 'open' AND asked_at IS NOT NULL;
CREATE INDEX questions_by_expiry ON whoa.questions (expires_at, task) WHERE state = 'open' AND expires_at IS NOT NULL;
CREATE TABLE whoa.journal (
  task text COLLATE "C", position int, epoch int NOT NULL, at float8 NOT NULL, event json NOT NULL,
  claim text COLLATE "C" NOT NULL, said float8 NOT NULL, PRIMARY KEY (task, position)
);
CREATE TABLE whoa.conversations (
  tenant text COLLATE "C", conversation text COLLATE "C", current text, waiting text[] NOT NULL DEFAULT '{}', debouncing text,
  history_bytes float8 NOT NULL DEFAULT 0, changed_at float8 NOT NULL,
  PRIMARY KEY (tenant, conversation)
) WITH (fillfactor = 75);
CREATE INDEX conversations_idle ON whoa.conversations (changed_at) WHERE current IS NULL AND debouncing IS NULL;
-- The history, one row per message: adding one must not cost more when there are many.
CREATE TABLE whoa.history (
  tenant text COLLATE "C", conversation text COLLATE "C", position int, message json NOT NULL,
  PRIMARY KEY (tenant, conversation, position)
);

-- A worker's session. It expires only while it holds tasks, and only beats extend it.
CREATE TABLE whoa.sessions (
  id text COLLATE "C" PRIMARY KEY, worker text NOT NULL, lease_ms float8 NOT NULL, expires_at float8,
  is_over boolean NOT NULL DEFAULT false, suspect text COLLATE "C",
  take_number int NOT NULL DEFAULT 0, last_taken text[] NOT NULL DEFAULT '{}', last_held_at float8 NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX sessions_by_expiry ON whoa.sessions (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX sessions_idle ON whoa.sessions (last_held_at) WHERE expires_at IS NULL;
-- Ready queues over their limit, as last counted.
CREATE TABLE whoa.capped (
  ready_queue text COLLATE "C", tenant text COLLATE "C", until float8 NOT NULL, PRIMARY KEY (ready_queue, tenant)
);
-- Agents and tenants whose tasks are not delivered.
CREATE TABLE whoa.paused (kind text COLLATE "C", name text COLLATE "C", PRIMARY KEY (kind, name));
-- Workers that wait for tasks of an agent.
CREATE TABLE whoa.waiters (
  agent text COLLATE "C", at float8, worker text COLLATE "C", PRIMARY KEY (agent, at, worker)
);
CREATE INDEX waiters_by_worker ON whoa.waiters (worker);
-- What the database remembers about time, in one row.
CREATE TABLE whoa.store_state (
  last_contact_at float8 NOT NULL, grace_until float8 NOT NULL, grace_granted boolean NOT NULL, sweep_requested_at float8 NOT NULL,
  shared text, shared_at float8 NOT NULL DEFAULT '-Infinity'
) WITH (fillfactor = 50);
INSERT INTO whoa.store_state VALUES (-1, 0, false, 0);
-- Processes that listen to the bus, and what each wants to hear of: '*' everything, 'c:' a conversation, 'i:' one task, 't:' a
-- tenant, 'w:' a worker's tasks. Unlogged: after a crash of the server they are written again.
CREATE UNLOGGED TABLE whoa.inboxes (inbox text COLLATE "C" PRIMARY KEY, until timestamptz NOT NULL);
CREATE INDEX inboxes_by_expiry ON whoa.inboxes (until);
CREATE UNLOGGED TABLE whoa.interests (
  name text COLLATE "C", inbox text COLLATE "C" REFERENCES whoa.inboxes ON DELETE CASCADE, PRIMARY KEY (name, inbox)
);
CREATE INDEX interests_by_inbox ON whoa.interests (inbox);
