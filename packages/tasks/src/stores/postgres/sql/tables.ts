/**
 * The tables. `whoa.` stands for the schema and is replaced when the migration runs. Times are milliseconds since the
 * epoch, on the database's clock. What people and models say is `json`, never `jsonb`: it must come back exactly as it
 * was, and `jsonb` refuses `\u0000`.
 */
export const TABLES = `
-- Names are compared byte by byte, everywhere: a function that is given names of two collations finds them in no index.
-- Updated in place while a task runs, so keep the columns that change with every renewal out of its indexes.
CREATE TABLE whoa.tasks (
  id text COLLATE "C" PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL, agent text NOT NULL, conversation text COLLATE "C", key text, inputs json[] NOT NULL,
  status text COLLATE "C" NOT NULL DEFAULT 'init', epoch int NOT NULL DEFAULT 0, attempts int NOT NULL DEFAULT 0,
  worker text, lease_until float8,
  waiting boolean NOT NULL DEFAULT false, held_until float8, held_policy text,
  due_at float8, created_at float8 NOT NULL, started_at float8, ended_at float8,
  stop_level text, stop_reason json, stop_abort_at float8, stop_kill_at float8, stop_undo boolean,
  commands_sent int NOT NULL DEFAULT 0, commands_waiting int NOT NULL DEFAULT 0,
  position int NOT NULL DEFAULT 0, watched_until float8,
  outcome json, outcome_reason json, outcome_complete boolean
) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX tasks_of_tenant ON whoa.tasks (tenant, created_at, id);
CREATE INDEX tasks_by_status ON whoa.tasks (tenant, status, created_at, id);
CREATE INDEX tasks_of_conversation ON whoa.tasks (tenant, conversation, created_at, id) WHERE conversation IS NOT NULL;
CREATE INDEX tasks_ended ON whoa.tasks (ended_at) WHERE ended_at IS NOT NULL;

-- When somebody should look at a task: narrow, because every renewal moves a row in its indexes.
CREATE TABLE whoa.due (
  id text COLLATE "C" PRIMARY KEY, shard int NOT NULL, due_at float8 NOT NULL
) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX due_first ON whoa.due (due_at);
CREATE INDEX due_in_shard ON whoa.due (shard, due_at);

CREATE TABLE whoa.commands (
  task text COLLATE "C", number int, steered text, command json NOT NULL, PRIMARY KEY (task, number)
);
CREATE TABLE whoa.journal (
  task text COLLATE "C", position int, epoch int NOT NULL, at float8 NOT NULL, event json NOT NULL,
  PRIMARY KEY (task, position)
);
CREATE TABLE whoa.conversations (
  tenant text COLLATE "C", conversation text COLLATE "C", current text, waiting text[] NOT NULL DEFAULT '{}', gathering text,
  history json NOT NULL DEFAULT '[]', changed_at float8 NOT NULL,
  PRIMARY KEY (tenant, conversation)
) WITH (fillfactor = 75);
CREATE INDEX conversations_idle ON whoa.conversations (changed_at) WHERE current IS NULL AND gathering IS NULL;
`;

/** By what a request that is repeated is known. */
export const NONCES = `
ALTER TABLE whoa.tasks ADD COLUMN nonce text, ADD COLUMN superseded text[], ADD COLUMN steered text;
CREATE TABLE whoa.sent (
  task text COLLATE "C", nonce text COLLATE "C", number int NOT NULL, PRIMARY KEY (task, nonce)
);
DROP FUNCTION IF EXISTS whoa.send(text, text, json, text, float8);
DROP FUNCTION IF EXISTS whoa.create_task(text, text, text, text, text, text, json, float8, text, float8, float8);
`;

/** How large each journal is. */
export const JOURNAL_BYTES = `
ALTER TABLE whoa.tasks ADD COLUMN journal_bytes float8 NOT NULL DEFAULT 0;
UPDATE whoa.tasks t SET journal_bytes = j.bytes
FROM (SELECT task, sum(octet_length(event::text)) AS bytes FROM whoa.journal GROUP BY task) j WHERE j.task = t.id;
DROP FUNCTION IF EXISTS whoa.append(text, int, int, json[], int[]);
`;

/** What was said, message by message: to add one must not cost more when there are many. */
export const HISTORY = `
CREATE TABLE whoa.history (
  tenant text COLLATE "C", conversation text COLLATE "C", position int, message json NOT NULL,
  PRIMARY KEY (tenant, conversation, position)
);
INSERT INTO whoa.history (tenant, conversation, position, message)
SELECT c.tenant, c.conversation, said.place, said.message
FROM whoa.conversations c, json_array_elements(c.history) WITH ORDINALITY AS said (message, place);
ALTER TABLE whoa.conversations DROP COLUMN history;
DROP FUNCTION IF EXISTS whoa.finish(text, int, text, json, json, boolean, json, float8);
`;

/** What the moves share: the clock, the doorbell, and how things are shown. */
export const BASICS = `
-- The store's clock. Small enough to be made part of what calls it; a query that looks it up in an index puts it in a
-- SELECT of its own.
CREATE FUNCTION whoa.now_ms() RETURNS float8 LANGUAGE sql VOLATILE AS $$
  SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8
$$;

CREATE FUNCTION whoa.note_due() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.due_at IS NULL THEN
    DELETE FROM whoa.due WHERE id = NEW.id;
  ELSIF TG_OP = 'UPDATE' AND OLD.due_at IS NOT NULL THEN
    UPDATE whoa.due SET due_at = NEW.due_at WHERE id = NEW.id;
  ELSE
    INSERT INTO whoa.due (id, shard, due_at) VALUES (NEW.id, whoa.shard_of(NEW.id), NEW.due_at);
  END IF;
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS due_inserted ON whoa.tasks;
CREATE TRIGGER due_inserted AFTER INSERT ON whoa.tasks
  FOR EACH ROW WHEN (NEW.due_at IS NOT NULL) EXECUTE FUNCTION whoa.note_due();
DROP TRIGGER IF EXISTS due_updated ON whoa.tasks;
CREATE TRIGGER due_updated AFTER UPDATE OF due_at ON whoa.tasks
  FOR EACH ROW WHEN (NEW.due_at IS DISTINCT FROM OLD.due_at) EXECUTE FUNCTION whoa.note_due();

-- The shard stands in the id, in base 36: t1z-…
CREATE FUNCTION whoa.shard_of(task_id text) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  shard int := 0;
  digit text;
BEGIN
  FOREACH digit IN ARRAY string_to_array(substr(split_part(task_id, '-', 1), 2), NULL) LOOP
    shard := shard * 36 + strpos('0123456789abcdefghijklmnopqrstuvwxyz', digit) - 1;
  END LOOP;
  RETURN shard;
END $$;

-- Rings the bell when the transaction commits: for those who watch this worker, and for those who watch everything.
-- The channels are named after a digest, because names of workers may be longer than a channel's.
CREATE FUNCTION whoa.tell(kind text, task_id text, tenant text, worker text, conversation text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  hint text := json_build_array(kind, task_id, tenant, worker, conversation);
BEGIN
  -- Too long for a notification: have everything looked at instead.
  IF octet_length(hint) >= 8000 THEN hint := '["resync"]'; END IF;
  PERFORM pg_notify('whoa_' || left(encode(sha256(convert_to('whoa.', 'UTF8')), 'hex'), 40), hint);
  IF worker IS NOT NULL THEN
    PERFORM pg_notify('whoa_' || left(encode(sha256(convert_to('whoa./' || worker, 'UTF8')), 'hex'), 40), hint);
  END IF;
END $$;

-- Appends the time to a reason as it was given, without looking inside: it may hold what Postgres cannot read.
CREATE FUNCTION whoa.reason(given text, at float8) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT (left(given, -1) || ',"at":' || at || '}')::json
$$;

CREATE FUNCTION whoa.own_reason(kind text, message text, at float8) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_build_object('kind', kind, 'message', message, 'at', at)
$$;

CREATE FUNCTION whoa.history_of(of_tenant text, of_conversation text) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT coalesce(json_agg(h.message ORDER BY h.position), '[]')
  FROM whoa.history h WHERE h.tenant = of_tenant AND h.conversation = of_conversation
$$;

CREATE FUNCTION whoa.commands_of(task_id text) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT coalesce(json_agg(json_build_array(c.number, c.command) ORDER BY c.number), '[]')
  FROM whoa.commands c WHERE c.task = task_id
$$;

-- A task for its readers; they leave out what is null.
CREATE FUNCTION whoa.task_of(task whoa.tasks) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN json_build_object(
    'id', task.id, 'tenant', task.tenant, 'agent', task.agent, 'conversation', task.conversation, 'key', task.key,
    'nonce', task.nonce, 'superseded', task.superseded, 'steered', task.steered,
    'inputs', task.inputs, 'status', task.status, 'epoch', task.epoch, 'attempts', task.attempts,
    'worker', task.worker, 'leaseUntil', task.lease_until, 'waiting', nullif(task.waiting, false),
    'held', CASE WHEN task.held_until IS NOT NULL
      THEN json_build_object('until', task.held_until, 'policy', task.held_policy) END,
    'dueAt', task.due_at, 'createdAt', task.created_at, 'startedAt', task.started_at, 'endedAt', task.ended_at,
    'stop', CASE WHEN task.stop_level IS NOT NULL THEN json_build_object(
      'level', task.stop_level, 'reason', task.stop_reason, 'undo', task.stop_undo,
      'abortAt', task.stop_abort_at, 'killAt', task.stop_kill_at) END,
    'commands', CASE WHEN task.commands_waiting > 0 THEN whoa.commands_of(task.id) ELSE '[]' END,
    'commandsSent', task.commands_sent, 'position', task.position, 'journalBytes', task.journal_bytes, 'watchedUntil', task.watched_until,
    'outcome', task.outcome, 'reason', task.outcome_reason, 'complete', task.outcome_complete);
END $$;

-- Everything the worker of a task should know.
CREATE FUNCTION whoa.orders_of(task whoa.tasks, now float8) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN json_build_object(
    'now', now, 'leaseUntil', coalesce(task.lease_until, now),
    'stop', CASE WHEN task.stop_level IS NOT NULL THEN json_build_object(
      'level', task.stop_level, 'reason', task.stop_reason, 'undo', task.stop_undo,
      'abortAt', task.stop_abort_at, 'killAt', task.stop_kill_at) END,
    'commands', CASE WHEN task.commands_waiting > 0 THEN whoa.commands_of(task.id) ELSE '[]' END,
    'watched', coalesce(now < task.watched_until, false));
END $$;
`;
