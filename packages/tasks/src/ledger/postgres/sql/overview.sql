-- Queries for operators: counts, tenants, workers.

-- Reads: tasks. Locks and writes: nothing. Returns: a number for each status, up to `p_limit`.
CREATE FUNCTION fn.count_tasks(p_tenant text, p_limit int, retention_ms float8) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  retained_from float8 := fn.now_ms() - retention_ms;
BEGIN
  RETURN (SELECT json_object_agg(s.status, (SELECT count(*) FROM (SELECT FROM whoa.tasks t
      WHERE t.tenant = p_tenant AND t.status = s.status AND (t.ended_at <= retained_from) IS NOT TRUE LIMIT p_limit) found))
    FROM unnest('{init,running,cancelling,success,failed,cancelled}' /*STATUSES*/::text[]) AS s (status));
END $$;

-- Jumps to the next name in the index each time, no matter how many tasks a tenant has.
-- Reads: tasks. Locks and writes: nothing. Returns: names.
CREATE FUNCTION fn.list_tenants(after text, page int) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  last text := after; names text[] := '{}';
BEGIN
  WHILE coalesce(array_length(names, 1), 0) < page LOOP
    SELECT t.tenant INTO last FROM whoa.tasks t WHERE t.tenant > last AND t.status > '' ORDER BY t.tenant LIMIT 1;
    EXIT WHEN NOT FOUND;
    names := names || last;
  END LOOP;
  RETURN array_to_json(names);
END $$;

-- Sessions that hold tasks, and workers that wait.
-- Reads: sessions, tasks, waiters. Locks and writes: nothing. Returns: both lists.
CREATE FUNCTION fn.list_workers(page int) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN json_build_object(
    'sessions', (SELECT coalesce(json_agg(s), '[]') FROM (
      SELECT s.worker AS "worker", s.expires_at AS "expiresAt",
        (SELECT count(*) FROM (SELECT FROM whoa.tasks t WHERE t.session = s.id AND t.stage = 'held' LIMIT 1000) h) AS "holds",
        ARRAY(SELECT t.id FROM whoa.tasks t WHERE t.session = s.id AND t.stage = 'held' LIMIT 100 /*MAX_SHOWN_TASKS*/) AS "tasks"
      FROM whoa.sessions s WHERE s.expires_at IS NOT NULL ORDER BY s.expires_at LIMIT page
    ) s WHERE s."holds" > 0),
    'waiters', (SELECT coalesce(json_agg(w), '[]') FROM (
      SELECT w.worker AS "worker", array_agg(w.agent) AS "agents" FROM whoa.waiters w
      WHERE w.at >= fn.now_ms() - 120000 /*idleWorkerTtlMs*/ GROUP BY w.worker ORDER BY w.worker LIMIT page
    ) w),
    'now', fn.now_ms());
END $$;

-- Within a priority, tasks are in order of time.
CREATE FUNCTION fn.oldest_in(of_queue text, p_tenant text) RETURNS float8 LANGUAGE plpgsql STABLE AS $$
DECLARE
  oldest float8; next_at float8; below int := 2147483647;
BEGIN
  LOOP
    SELECT t.priority, t.stage_at INTO below, next_at FROM whoa.tasks t
    WHERE t.stage = 'ready' AND t.ready_queue = of_queue AND t.tenant = p_tenant AND t.priority < below
    ORDER BY t.priority DESC, t.stage_at, t.id LIMIT 1;
    EXIT WHEN NOT FOUND;
    oldest := least(oldest, next_at);
  END LOOP;
  RETURN oldest;
END $$;

-- Jumps to the next queue in the index each time, no matter how many tasks are ready in one.
-- Returns the queue after a given one, with an agent that may have several ready queues.
CREATE FUNCTION fn.next_queue(INOUT of_agent text, INOUT p_tenant text) LANGUAGE plpgsql STABLE AS $$
DECLARE
  after text COLLATE "C" := of_agent; after_tenant text COLLATE "C" := p_tenant;
BEGIN
  SELECT q.agent, q.tenant INTO of_agent, p_tenant FROM (
    (SELECT fn.to_agent(t.ready_queue) AS agent, t.tenant FROM whoa.tasks t
      WHERE t.stage = 'ready' AND (t.ready_queue, t.tenant) > (after, after_tenant) AND t.ready_queue <= '*' /*SETTLE*/
      ORDER BY t.ready_queue, t.tenant LIMIT 1)
    UNION ALL (SELECT fn.to_agent(t.ready_queue) AS agent, t.tenant FROM whoa.tasks t
      WHERE t.stage = 'ready' AND (t.ready_queue, t.tenant) > (after, after_tenant) AND t.ready_queue >= '+' /*AFTER_RESERVED*/
      ORDER BY t.ready_queue, t.tenant LIMIT 1)
    UNION ALL (SELECT n.agent, n.tenant FROM (VALUES ('*!' /*UNDO*/, '*"' /*AFTER_UNDO*/), ('*?' /*SUSPECTS*/, '*@' /*AFTER_SUSPECTS*/),
        ('*}' /*OFFERED_SUSPECTS*/, '*~' /*OFFERED*/), ('*~' /*OFFERED*/, '+' /*AFTER_RESERVED*/)) AS r (first, behind)
      CROSS JOIN LATERAL (SELECT fn.to_agent(t.ready_queue) AS agent, t.tenant FROM whoa.tasks t
        WHERE t.stage = 'ready' AND (t.ready_queue, t.tenant) > (r.first || after, after_tenant) AND t.ready_queue < r.behind
        ORDER BY t.ready_queue, t.tenant LIMIT 1) n)
  ) q ORDER BY q.agent COLLATE "C", q.tenant COLLATE "C" LIMIT 1;
END $$;

-- Reads: tasks, waiters, paused, engines. Locks and writes: nothing. Returns: a page; the first also has what runs and what is paused.
CREATE FUNCTION fn.list_queues(after_queue text, after_tenant text, page int, p_limit int) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  queues json[] := '{}'; of_queue text COLLATE "C" := after_queue; p_tenant text COLLATE "C" := after_tenant;
  has_reserved boolean := EXISTS (SELECT FROM whoa.tasks t WHERE t.stage = 'ready' AND t.ready_queue > '*' /*SETTLE*/
    AND t.ready_queue < '+' /*AFTER_RESERVED*/); is_first boolean := after_queue = ''; running json := '{}';
  agents text[] := '{}'; ready_queues text[]; ready int; now float8 := fn.now_ms();
BEGIN
  WHILE cardinality(queues) < page LOOP
    IF has_reserved THEN
      SELECT n.of_agent, n.p_tenant INTO of_queue, p_tenant FROM fn.next_queue(of_queue, p_tenant) n;
    ELSE
      SELECT t.ready_queue, t.tenant INTO of_queue, p_tenant FROM whoa.tasks t
      WHERE t.stage = 'ready' AND (t.ready_queue, t.tenant) > (of_queue, p_tenant) ORDER BY t.ready_queue, t.tenant LIMIT 1;
    END IF;
    EXIT WHEN of_queue IS NULL;
    ready_queues := CASE WHEN has_reserved THEN ARRAY[of_queue, '*?' /*SUSPECTS*/ || of_queue, '*!' /*UNDO*/ || of_queue,
      '*}' /*OFFERED_SUSPECTS*/ || of_queue, '*~' /*OFFERED*/ || of_queue]
      ELSE ARRAY[of_queue] END;
    -- All queues of a page share the limit up to which they are counted.
    ready := (SELECT sum(fn.count_ready(l, p_tenant, greatest(p_limit, 100))) FROM unnest(ready_queues) AS l);
    p_limit := p_limit - ready;
    agents := agents || of_queue;
    queues := queues || json_build_object('agent', of_queue, 'tenant', p_tenant, 'ready', ready,
      'oldestReadyAt', (SELECT min(fn.oldest_in(l, p_tenant)) FROM unnest(ready_queues) AS l));
  END LOOP;
  IF is_first THEN running := fn.count_running(page, 10000); END IF;
  agents := array_remove(agents || ARRAY(SELECT json_object_keys(running)), '*' /*SETTLE*/);
  RETURN json_build_object('queues', array_to_json(queues), 'now', now, 'running', running,
    'waiting', (SELECT coalesce(json_object_agg(w.agent, w.number), '{}') FROM (
      SELECT w.agent, count(*) AS number FROM whoa.waiters w
      WHERE w.agent = ANY (agents) AND w.at >= now - 120000 /*idleWorkerTtlMs*/ GROUP BY w.agent) w),
    'engines', (SELECT coalesce(json_object_agg(e.agent, e.engine), '{}') FROM whoa.engines e WHERE is_first),
    'paused', (SELECT coalesce(json_agg(CASE p.kind
      WHEN 'all' THEN json_build_object('all', true) ELSE json_build_object(p.kind, p.name) END), '[]') FROM (
      SELECT * FROM whoa.paused WHERE is_first ORDER BY kind, name LIMIT page) p));
END $$;

-- All agents share the limit up to which they are counted.
CREATE FUNCTION fn.count_running(page int, p_limit int) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT coalesce(json_object_agg(h.agent, h.number), '{}') FROM (
    SELECT o.agent, count(*) AS number FROM (
      SELECT t.agent FROM whoa.tasks t WHERE t.stage = 'held' AND t.session IS NOT NULL LIMIT p_limit) o
    GROUP BY o.agent ORDER BY o.agent LIMIT page) h);
END $$;

-- Reads: conversations. Locks and writes: nothing. Returns: names.
CREATE FUNCTION fn.list_conversations(p_tenant text, after text, page int) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN array_to_json(ARRAY(SELECT c.conversation FROM whoa.conversations c
    WHERE c.tenant = p_tenant AND c.conversation > after ORDER BY c.conversation LIMIT page));
END $$;
