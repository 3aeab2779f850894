import { MAX_SHOWN_TASKS } from '../../../overview.ts';
import { BACKGROUND } from '../../../rules/background.ts';
import { toSqlText } from '../../../rules/literals.ts';
import { AFTER_RESERVED, LIMITS, SETTLE, SUSPECTS, UNDO } from '../../../rules/rules.ts';
import { isFinalStatus, STATUS_TABLE, type TaskStatus } from '../../../status.ts';

/** One page of a tenant's tasks with one status, newest first: a piece of one index. */
const PAGE = `SELECT * FROM whoa.tasks t WHERE t.tenant = of_tenant AND t.status = :status
  AND (t.created_at, t.id) < (before_at, before_id) ORDER BY t.created_at DESC, t.id DESC LIMIT page`;

const everyStatus = Object.keys(STATUS_TABLE).map((status) => `(${PAGE.replace(':status', toSqlText(status))})`);

/** Read queries: a task, a page of a tenant's tasks, part of a journal, a conversation. */
export const READ: string = `
CREATE FUNCTION fn.get_task(of_tenant text, task_id text, kept_ms float8) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
BEGIN
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id AND t.tenant IS NOT DISTINCT FROM of_tenant;
  -- Hides tasks past their retention, whether or not they have been removed yet.
  IF task.id IS NULL OR task.ended_at <= fn.now_ms() - kept_ms THEN RETURN NULL; END IF;
  RETURN fn.record_of(task);
END $$;

-- Returns a page after a cursor, newest first: each kind of query has an index in this order.
CREATE FUNCTION fn.list_tasks(
  of_tenant text, of_status text, of_conversation text, before_at float8, before_id text, page int, of_background text
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
  shown json[] := '{}';
  source refcursor;
BEGIN
  before_at := coalesce(before_at, 'Infinity');
  before_id := coalesce(before_id, '');
  IF of_conversation IS NOT NULL THEN
    OPEN source FOR SELECT * FROM whoa.tasks t WHERE t.tenant = of_tenant AND t.conversation = of_conversation
      AND (of_status IS NULL OR t.status = of_status)
      AND (t.created_at, t.id) < (before_at, before_id) ORDER BY t.created_at DESC, t.id DESC LIMIT page;
  ELSIF of_background IS NOT NULL THEN
    OPEN source FOR SELECT * FROM whoa.tasks t WHERE t.tenant = of_tenant AND t.key LIKE '${BACKGROUND}%'
      AND t.conversation IS NULL AND regexp_replace(t.key, '/[^/]*$', '') = '${BACKGROUND}' || of_background
      AND (of_status IS NULL OR t.status = of_status)
      AND (t.created_at, t.id) < (before_at, before_id) ORDER BY t.created_at DESC, t.id DESC LIMIT page;
  ELSIF of_status IS NOT NULL THEN
    OPEN source FOR ${PAGE.replace(':status', 'of_status')};
  ELSE
    OPEN source FOR SELECT * FROM (${everyStatus.join(' UNION ALL ')}) t ORDER BY t.created_at DESC, t.id DESC LIMIT page;
  END IF;
  LOOP
    FETCH source INTO task;
    EXIT WHEN NOT FOUND;
    shown := shown || fn.head_of(task);
  END LOOP;
  CLOSE source;
  RETURN json_build_object('now', fn.now_ms(), 'tasks', array_to_json(shown));
END $$;

CREATE FUNCTION fn.read_journal(of_tenant text, task_id text, after int, page int, kept_ms float8)
RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
BEGIN
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id AND t.tenant IS NOT DISTINCT FROM of_tenant;
  IF task.id IS NULL OR task.ended_at <= fn.now_ms() - kept_ms THEN RETURN '[]'; END IF;
  RETURN (SELECT coalesce(json_agg(json_build_object('position', e.position, 'epoch', e.epoch, 'at', e.at, 'event', e.event)), '[]')
    FROM (SELECT * FROM whoa.journal j WHERE j.task = task_id AND j.position > after ORDER BY j.position LIMIT page) e);
END $$;

CREATE FUNCTION fn.get_conversation(of_tenant text, of_conversation text, kept_ms float8) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  line whoa.conversations;
BEGIN
  SELECT * INTO line FROM whoa.conversations c WHERE c.tenant = of_tenant AND c.conversation = of_conversation;
  IF NOT FOUND OR (line.current IS NULL AND line.gathering IS NULL AND line.changed_at <= fn.now_ms() - kept_ms) THEN
    RETURN NULL;
  END IF;
  RETURN json_build_object('tenant', line.tenant, 'conversation', line.conversation, 'current', line.current,
    'waiting', line.waiting, 'gathering', line.gathering, 'changedAt', line.changed_at,
    'history', fn.history_of(line.tenant, line.conversation));
END $$;
`;

/** The first text after all that start with another, in byte order. */
const textAfter = (start: string): string =>
  `${start.slice(0, -1)}${String.fromCharCode(start.charCodeAt(start.length - 1) + 1)}`;

/** The first lane after one, and its tenant. */
const nextLane = (
  after: string,
  where: string,
): string => `(SELECT fn.agent_of(t.lane) AS agent, t.tenant FROM whoa.tasks t
      WHERE t.stage = 'ready' AND (t.lane, t.tenant) > (${after}, after_tenant) AND ${where} ORDER BY t.lane, t.tenant LIMIT 1)`;

const counted = (Object.keys(STATUS_TABLE) as TaskStatus[]).map(
  (status) => `${toSqlText(status)}, (SELECT count(*) FROM (
    SELECT FROM whoa.tasks t WHERE t.tenant = of_tenant AND t.status = ${toSqlText(status)}
      ${isFinalStatus(status) ? 'AND t.ended_at > fn.now_ms() - kept_ms' : ''} LIMIT most) found)`,
);

/** Tasks of one session, and of all agents, are counted up to so many; those of one queue or agent at least up to that many. */
const MAX_HELD = 1_000;
const MAX_RUNNING = 5_000;
const MIN_COUNTED = 100;

/** Queries for operators: counts, tenants, workers. */
export const OVERVIEW: string = `
CREATE FUNCTION fn.count_tasks(of_tenant text, most int, kept_ms float8) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN json_build_object(${counted.join(', ')});
END $$;

-- Jumps to the next name in the index each time, however many tasks a tenant has.
CREATE FUNCTION fn.list_tenants(after text, page int) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  last text := after;
  names text[] := '{}';
BEGIN
  WHILE coalesce(array_length(names, 1), 0) < page LOOP
    SELECT t.tenant INTO last FROM whoa.tasks t WHERE t.tenant > last AND t.status > '' ORDER BY t.tenant LIMIT 1;
    EXIT WHEN NOT FOUND;
    names := names || last;
  END LOOP;
  RETURN array_to_json(names);
END $$;

-- Sessions that hold tasks, and workers that wait.
CREATE FUNCTION fn.list_workers(page int) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN json_build_object(
    'sessions', (SELECT coalesce(json_agg(s), '[]') FROM (
      SELECT s.worker AS "worker", s.expires_at AS "expiresAt",
        (SELECT count(*) FROM (SELECT FROM whoa.tasks t WHERE t.session = s.id AND t.stage = 'held' LIMIT ${MAX_HELD}) h) AS "holds",
        ARRAY(SELECT t.id FROM whoa.tasks t WHERE t.session = s.id AND t.stage = 'held' LIMIT ${MAX_SHOWN_TASKS}) AS "tasks"
      FROM whoa.sessions s WHERE s.expires_at IS NOT NULL ORDER BY s.expires_at LIMIT page
    ) s WHERE s."holds" > 0),
    'waiters', (SELECT coalesce(json_agg(w), '[]') FROM (
      SELECT w.worker AS "worker", array_agg(w.agent) AS "agents" FROM whoa.waiters w
      WHERE w.at >= fn.now_ms() - ${LIMITS.parkedMs} GROUP BY w.worker ORDER BY w.worker LIMIT page
    ) w),
    'now', fn.now_ms());
END $$;

-- Within a priority, tasks are in order of time.
CREATE FUNCTION fn.oldest_in(of_lane text, of_tenant text) RETURNS float8 LANGUAGE plpgsql STABLE AS $$
DECLARE
  oldest float8;
  next_at float8;
  below int := 2147483647;
BEGIN
  LOOP
    SELECT t.priority, t.stage_at INTO below, next_at FROM whoa.tasks t
    WHERE t.stage = 'ready' AND t.lane = of_lane AND t.tenant = of_tenant AND t.priority < below
    ORDER BY t.priority DESC, t.stage_at, t.id LIMIT 1;
    EXIT WHEN NOT FOUND;
    oldest := least(oldest, next_at);
  END LOOP;
  RETURN oldest;
END $$;

-- Jumps to the next queue in the index each time, however many tasks are ready in one.
-- Returns the queue after a given one, with an agent that may have three lanes.
CREATE FUNCTION fn.next_queue(INOUT of_agent text, INOUT of_tenant text) LANGUAGE plpgsql STABLE AS $$
DECLARE
  after text COLLATE "C" := of_agent;
  after_tenant text COLLATE "C" := of_tenant;
BEGIN
  SELECT q.agent, q.tenant INTO of_agent, of_tenant FROM (
    ${nextLane('after', `t.lane <= ${toSqlText(SETTLE)}`)}
    UNION ALL ${nextLane('after', `t.lane >= ${toSqlText(AFTER_RESERVED)}`)}
    ${[SUSPECTS, UNDO].map((start) => `UNION ALL ${nextLane(`${toSqlText(start)} || after`, `t.lane < ${toSqlText(textAfter(start))}`)}`).join('\n    ')}
  ) q ORDER BY q.agent COLLATE "C", q.tenant COLLATE "C" LIMIT 1;
END $$;

CREATE FUNCTION fn.list_queues(after_lane text, after_tenant text, page int, most int) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  queues json[] := '{}';
  of_lane text COLLATE "C" := after_lane;
  of_tenant text COLLATE "C" := after_tenant;
  has_reserved boolean := fn.has_reserved();
  is_first boolean := after_lane = '';
  running json := '{}';
  agents text[] := '{}';
  lanes text[];
  ready int;
  now float8 := fn.now_ms();
BEGIN
  WHILE cardinality(queues) < page LOOP
    IF has_reserved THEN
      SELECT n.of_agent, n.of_tenant INTO of_lane, of_tenant FROM fn.next_queue(of_lane, of_tenant) n;
    ELSE
      SELECT t.lane, t.tenant INTO of_lane, of_tenant FROM whoa.tasks t
      WHERE t.stage = 'ready' AND (t.lane, t.tenant) > (of_lane, of_tenant) ORDER BY t.lane, t.tenant LIMIT 1;
    END IF;
    EXIT WHEN of_lane IS NULL;
    lanes := CASE WHEN has_reserved THEN ARRAY[of_lane, ${toSqlText(SUSPECTS)} || of_lane, ${toSqlText(UNDO)} || of_lane] ELSE ARRAY[of_lane] END;
    -- All queues of a page share the limit up to which they are counted.
    ready := (SELECT sum(fn.count_ready(l, of_tenant, greatest(most, ${MIN_COUNTED}))) FROM unnest(lanes) AS l);
    most := most - ready;
    agents := agents || of_lane;
    queues := queues || json_build_object('agent', of_lane, 'tenant', of_tenant, 'ready', ready,
      'oldestAt', (SELECT min(fn.oldest_in(l, of_tenant)) FROM unnest(lanes) AS l));
  END LOOP;
  IF is_first THEN running := fn.count_running(page, ${MAX_RUNNING}); END IF;
  agents := array_remove(agents || ARRAY(SELECT json_object_keys(running)), ${toSqlText(SETTLE)});
  RETURN json_build_object('queues', array_to_json(queues), 'now', now, 'running', running,
    'waiting', (SELECT coalesce(json_object_agg(w.agent, w.number), '{}') FROM (
      SELECT w.agent, count(*) AS number FROM whoa.waiters w
      WHERE w.agent = ANY (agents) AND w.at >= now - ${LIMITS.parkedMs} GROUP BY w.agent) w),
    'paused', (SELECT coalesce(json_agg(json_build_object(p.kind, p.name)), '[]') FROM (
      SELECT * FROM whoa.paused WHERE is_first ORDER BY kind, name LIMIT page) p));
END $$;

-- Jumps to the next agent in the index each time. All agents share the limit up to which they are counted.
CREATE FUNCTION fn.count_running(page int, most int) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
  counts jsonb := '{}';
  of_agent text COLLATE "C" := '';
  number int;
BEGIN
  FOR i IN 1..page LOOP
    SELECT t.agent INTO of_agent FROM whoa.tasks t WHERE t.stage = 'held' AND t.agent > of_agent ORDER BY t.agent LIMIT 1;
    EXIT WHEN NOT FOUND;
    SELECT count(*) INTO number FROM (
      SELECT FROM whoa.tasks t WHERE t.stage = 'held' AND t.agent = of_agent LIMIT greatest(most, ${MIN_COUNTED})) held;
    most := most - number;
    counts := counts || jsonb_build_object(of_agent, number);
  END LOOP;
  RETURN counts;
END $$;

CREATE FUNCTION fn.list_conversations(of_tenant text, after text, page int) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN array_to_json(ARRAY(SELECT c.conversation FROM whoa.conversations c
    WHERE c.tenant = of_tenant AND c.conversation > after ORDER BY c.conversation LIMIT page));
END $$;
`;

/** What operators change: deliveries are paused, records are removed. */
export const OPERATE: string = `
CREATE FUNCTION fn.share(max_age float8, of_found text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now float8 := fn.now_ms();
  is_due boolean := false;
BEGIN
  IF of_found IS NOT NULL THEN
    UPDATE whoa.pulse SET shared = of_found;
  ELSIF EXISTS (SELECT FROM whoa.pulse p WHERE now - p.shared_at >= max_age OR p.shared_at > now) THEN
    UPDATE whoa.pulse p SET shared_at = now WHERE now - p.shared_at >= max_age OR p.shared_at > now;
    is_due := FOUND;
  END IF;
  RETURN (SELECT json_build_object('isDue', is_due, 'found', p.shared) FROM whoa.pulse p);
END $$;

CREATE FUNCTION fn.pause(of_kind text, of_name text, is_paused boolean) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now float8 := fn.now_ms();
BEGIN
  IF is_paused THEN
    INSERT INTO whoa.paused (kind, name) VALUES (of_kind, of_name) ON CONFLICT DO NOTHING;
    RETURN 'true';
  END IF;
  DELETE FROM whoa.paused p WHERE p.kind = of_kind AND p.name = of_name;
  IF of_kind = 'agent' THEN
    PERFORM fn.ring_waiter(of_name, now);
  ELSE
    PERFORM fn.ring_waiter(w.agent, now) FROM (SELECT DISTINCT agent FROM whoa.waiters) w WHERE EXISTS (
      SELECT FROM whoa.tasks t WHERE t.stage = 'ready' AND t.lane IN (w.agent, ${toSqlText(SUSPECTS)} || w.agent) AND t.tenant = of_name);
  END IF;
  RETURN 'true';
END $$;

CREATE FUNCTION fn.remove_task(of_tenant text, task_id text, kept_ms float8) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
BEGIN
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id AND t.tenant IS NOT DISTINCT FROM of_tenant FOR UPDATE;
  IF task.id IS NULL OR task.ended_at <= fn.now_ms() - kept_ms THEN RETURN json_build_object('answer', 'unknown'); END IF;
  IF task.ended_at IS NULL THEN RETURN json_build_object('answer', 'live'); END IF;
  PERFORM fn.drop_tasks(ARRAY[task_id]);
  RETURN json_build_object('answer', 'removed');
END $$;

CREATE FUNCTION fn.remove_conversation(of_tenant text, of_conversation text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  line whoa.conversations;
BEGIN
  SELECT * INTO line FROM whoa.conversations c WHERE c.tenant = of_tenant AND c.conversation = of_conversation FOR UPDATE;
  IF NOT FOUND THEN RETURN json_build_object('answer', 'unknown'); END IF;
  IF line.current IS NOT NULL OR line.gathering IS NOT NULL THEN RETURN json_build_object('answer', 'live'); END IF;
  DELETE FROM whoa.history h WHERE h.tenant = of_tenant AND h.conversation = of_conversation;
  DELETE FROM whoa.conversations c WHERE c.tenant = of_tenant AND c.conversation = of_conversation;
  RETURN json_build_object('answer', 'removed');
END $$;
`;
