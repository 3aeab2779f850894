-- The feed: what changed, for consumers. A cursor is a snapshot: what it shows is done. Inside a window, events come in the order of
-- `id`, which a step draws after it has locked its tasks: so each task's events come in order, and no transaction of others
-- stalls them. A transaction that reads the feed never appends to it. See `feed/feed.ts`.

-- Returns whether a consumer wants a kind. `enter` has read which.
CREATE FUNCTION fn.is_fed(p_kind text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN strpos(coalesce(current_setting('whoa_store.feeds', true), ''), p_kind) > 0;
END $$;

-- Returns what is counted of an end. See `toEndCode`. The reason is searched as text: it may contain what Postgres cannot read.
CREATE FUNCTION fn.end_code(ending text, code text, reason json) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE ending WHEN 'failed' THEN code
    WHEN 'cancelled' THEN substring(reason::text FROM '"kind" ?: ?"([A-Za-z0-9_.:-]{1,64})"') END
$$;

-- The part of a tenant's events. Those without one are in part 0.
CREATE FUNCTION fn.to_part(tenant text) RETURNS smallint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN tenant = '' THEN 0 ELSE hashtextextended(tenant, 0) & 7 END::smallint
$$;

-- Appends events, in order. The caller has locked and changed what they are about.
CREATE FUNCTION fn.tell_all(
  p_kind text, tenants text[], tasks text[], conversations text[], agents text[], statuses text[], codes text[], questions text[],
  now float8
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  -- No one is told of Whoa's own tasks.
  parts smallint[] := ARRAY(SELECT DISTINCT fn.to_part(n.tenant) FROM unnest(tenants) AS n (tenant)
    WHERE NOT starts_with(n.tenant, 'whoa.' /*OWN_TENANTS*/));
BEGIN
  IF parts = '{}' THEN RETURN; END IF;
  INSERT INTO whoa.feed (part, kind, tenant, task, conversation, agent, status, code, question, at)
  SELECT fn.to_part(n.tenant), p_kind, n.tenant, n.task, n.conversation, n.agent, n.status, n.code, n.question, now
  FROM unnest(tenants, tasks, conversations, agents, statuses, codes, questions) WITH ORDINALITY
    AS n (tenant, task, conversation, agent, status, code, question, ordinal)
  WHERE NOT starts_with(n.tenant, 'whoa.' /*OWN_TENANTS*/) ORDER BY n.ordinal;
  PERFORM fn.tell_reader(c.reader, c.consumer, c.part) FROM whoa.cursors c
  WHERE c.part = ANY (parts) AND c.reader IS NOT NULL AND p_kind = ANY (c.kinds);
END $$;

-- Has the process that reads a part told after the commit. Its inbox is the first word of the reader's name.
CREATE FUNCTION fn.tell_reader(reader text, consumer text, part smallint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  told text := coalesce(current_setting('whoa_store.hints', true), '');
  hint text := json_build_array(split_part(reader, ' ', 1), json_build_array('feed', consumer, NULL, reader, NULL, part)) || ',';
BEGIN
  IF strpos(told, hint) = 0 THEN PERFORM set_config('whoa_store.hints', told || hint, true); END IF;
END $$;

CREATE FUNCTION fn.tell(p_kind text, task whoa.tasks, status text, code text, question text, now float8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT fn.is_fed(p_kind) THEN RETURN; END IF;
  PERFORM fn.tell_all(p_kind, ARRAY[task.tenant], ARRAY[task.id], ARRAY[task.conversation], ARRAY[task.agent], ARRAY[status], ARRAY[code],
    ARRAY[question], now);
END $$;

CREATE FUNCTION fn.tell_questions(p_kind text, task whoa.tasks, ids text[], now float8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF coalesce(cardinality(ids), 0) = 0 OR NOT fn.is_fed(p_kind) THEN RETURN; END IF;
  PERFORM fn.tell(p_kind, task, NULL, NULL, q.id, now) FROM unnest(ids) AS q (id);
END $$;

CREATE FUNCTION fn.tell_conversation(p_tenant text, of_conversation text, now float8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT fn.is_fed('conversation.changed') THEN RETURN; END IF;
  PERFORM fn.tell_all('conversation.changed', ARRAY[p_tenant], ARRAY[NULL::text], ARRAY[of_conversation], ARRAY[NULL::text],
    ARRAY[NULL::text], ARRAY[NULL::text], ARRAY[NULL::text], now);
END $$;

CREATE FUNCTION fn.tell_pause(p_kind text, of_kind text, of_name text, now float8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT fn.is_fed(p_kind) THEN RETURN; END IF;
  PERFORM fn.tell_all(p_kind, ARRAY[CASE WHEN of_kind = 'tenant' THEN of_name ELSE '' END], ARRAY[NULL::text], ARRAY[NULL::text],
    ARRAY[CASE WHEN of_kind = 'agent' THEN of_name END], ARRAY[NULL::text], ARRAY[NULL::text], ARRAY[NULL::text], now);
END $$;

-- Registers a consumer, or more kinds. The caller has locked `layout` against readers, and every step reads it first: so no step is
-- running that does not know of it. Returns whether the consumer is new.
-- Reads: cursors. Locks: nothing. Writes: layout, cursors. Returns: whether it is new.
CREATE FUNCTION fn.register_feed(p_consumer text, p_kinds text[], look_back_ms float8) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now float8 := fn.now_ms(); is_new boolean := NOT EXISTS (SELECT FROM whoa.cursors c WHERE c.consumer = p_consumer);
BEGIN
  INSERT INTO whoa.cursors AS c (consumer, part, kinds, seen_at, missed_since)
  SELECT p_consumer, g, p_kinds, now, now - look_back_ms FROM generate_series(0, 7) AS g
  ON CONFLICT (part, consumer) DO UPDATE SET kinds = ARRAY(SELECT DISTINCT unnest(c.kinds || excluded.kinds));
  PERFORM fn.count_kinds();
  UPDATE whoa.layout SET cluster = coalesce(cluster, fn.cluster());
  RETURN to_json(is_new);
END $$;

-- Which server this is; NULL where a role may not read it.
CREATE FUNCTION fn.cluster() RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT system_identifier::text FROM pg_control_system());
EXCEPTION WHEN insufficient_privilege THEN
  RETURN NULL;
END $$;

CREATE FUNCTION fn.count_kinds() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE whoa.layout SET feeds = (SELECT coalesce(string_agg(DISTINCT k.kind, ' '), '')
    FROM whoa.cursors c CROSS JOIN LATERAL unnest(c.kinds) AS k (kind));
END $$;

-- Returns whether a consumer is registered for these kinds.
-- Reads: cursors. Locks and writes: nothing. Returns: whether it is.
CREATE FUNCTION fn.is_registered(p_consumer text, p_kinds text[]) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN to_json((SELECT count(*) = 8 FROM whoa.cursors c WHERE c.part = ANY ('{0,1,2,3,4,5,6,7}'::smallint[]) AND c.consumer = p_consumer
    AND p_kinds <@ c.kinds));
END $$;

-- What a cursor has not seen: later transactions, and those that ran when it looked.
CREATE FUNCTION fn.unseen(p_part smallint, seen pg_snapshot) RETURNS SETOF whoa.feed LANGUAGE sql STABLE AS $$
  SELECT * FROM whoa.feed f WHERE f.part = p_part AND f.xid >= pg_snapshot_xmax(seen)
  UNION ALL SELECT * FROM whoa.feed f WHERE f.part = p_part AND f.xid = ANY (ARRAY(SELECT pg_snapshot_xip(seen)))
$$;

-- Takes the parts that are free, and returns a page of each that has news. Writes only to take or extend a lease: a read needs no
-- flush.
-- Reads: cursors, feed. Locks: cursors that no one has locked. Writes: cursors. Returns: pages.
CREATE FUNCTION fn.take_feed(p_consumer text, p_reader text, lease_ms float8, p_limit int, p_parts smallint[])
RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now float8 := fn.now_ms(); held_until float8; holds int; pages json;
BEGIN
  IF NOT EXISTS (SELECT FROM whoa.cursors c WHERE c.part = 0 AND c.consumer = p_consumer) THEN RETURN '{"result":"gone"}'; END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  -- One that lasts longer than a lease is from before the clock was set back.
  IF EXISTS (SELECT FROM whoa.cursors c WHERE c.part = ANY (p_parts) AND c.consumer = p_consumer
    AND (c.until <= now OR c.until > now + lease_ms OR (c.reader = p_reader AND c.until < now + lease_ms / 2))) THEN
    UPDATE whoa.cursors c SET reader = p_reader, until = now + lease_ms, seen_at = now FROM (
      SELECT o.part FROM whoa.cursors o WHERE o.part = ANY (p_parts) AND o.consumer = p_consumer
        AND (o.until <= now OR o.until > now + lease_ms OR (o.reader = p_reader AND o.until < now + lease_ms / 2))
      ORDER BY o.part FOR UPDATE SKIP LOCKED
    ) free WHERE c.part = free.part AND c.consumer = p_consumer;
  END IF;
  -- One statement, so one snapshot: what it returns is what it shows.
  SELECT json_agg(json_build_array(c.part, c.version, coalesce(c.upto, s.present), c.missed_since, coalesce(s.events, '[]'::json),
    s.n = p_limit))
  INTO pages FROM whoa.cursors c CROSS JOIN LATERAL (
    SELECT pg_current_snapshot() AS present, count(*) AS n, json_agg(json_build_array(e.id::text, e.event, e.kind, e.tenant, e.at, e.task,
      e.conversation, e.agent, e.status, e.code, e.question) ORDER BY e.id) AS events
    FROM (SELECT f.* FROM fn.unseen(c.part, c.seen) f WHERE f.id > c.done AND f.kind = ANY (c.kinds)
      AND (c.upto IS NULL OR pg_visible_in_snapshot(f.xid, c.upto)) ORDER BY f.id LIMIT p_limit) e) s
  WHERE c.part = ANY (p_parts) AND c.consumer = p_consumer AND c.reader = p_reader
    AND (s.n > 0 OR c.upto IS NOT NULL OR c.missed_since IS NOT NULL);
  SELECT min(c.until) FILTER (WHERE c.reader <> p_reader), count(*) FILTER (WHERE c.reader = p_reader) INTO held_until, holds
  FROM whoa.cursors c WHERE c.part = ANY (p_parts) AND c.consumer = p_consumer AND c.until > now;
  RETURN json_build_object('result', 'taken', 'pages', coalesce(pages, '[]'::json), 'holds', holds, 'heldUntil', held_until, 'now', now);
END $$;

-- Moves cursors that are still this reader's, and were not moved since they were read. `dones` NULL: the window is done. A move that
-- is lost is only a repeat; what it adds to totals is lost with it.
-- Reads: cursors. Locks: cursors. Writes: cursors, totals. Returns: the parts that it moved.
CREATE FUNCTION fn.move_feed(
  p_consumer text, p_reader text, lease_ms float8, parts smallint[], versions int[], uptos text[], dones text[],
  add_parts smallint[], add_names text[], add_values float8[]
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  moved smallint[]; now float8 := fn.now_ms();
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  WITH m AS (
    UPDATE whoa.cursors c SET until = now + lease_ms, seen_at = now, missed_since = NULL, version = c.version + 1,
      seen = CASE WHEN u.done IS NULL THEN u.upto::pg_snapshot ELSE c.seen END,
      upto = CASE WHEN u.done IS NULL THEN NULL ELSE u.upto::pg_snapshot END, done = coalesce(u.done::bigint, 0)
    FROM unnest(parts, versions, uptos, dones) AS u (part, version, upto, done)
    WHERE c.part = u.part AND c.consumer = p_consumer AND c.reader = p_reader AND c.version = u.version RETURNING c.part
  ) SELECT array_agg(m.part) INTO moved FROM m;
  INSERT INTO whoa.totals AS t (name, value)
  SELECT a.name, sum(a.value) FROM unnest(add_parts, add_names, add_values) AS a (part, name, value)
  WHERE a.part = ANY (moved) GROUP BY a.name ORDER BY a.name
  ON CONFLICT (name) DO UPDATE SET value = t.value + excluded.value;
  RETURN coalesce(to_json(moved), '[]'::json);
END $$;

-- Lets other processes read. Those that wait are told.
-- Reads: cursors. Locks: cursors. Writes: cursors. Returns: nothing.
CREATE FUNCTION fn.leave_feed(p_consumer text, p_reader text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE whoa.cursors c SET reader = NULL, until = 0
  WHERE c.part = ANY ('{0,1,2,3,4,5,6,7}'::smallint[]) AND c.consumer = p_consumer AND c.reader = p_reader;
  IF FOUND THEN PERFORM fn.add_hint(ARRAY['f:' || p_consumer], json_build_array('feed', p_consumer, NULL, NULL, NULL, 0)); END IF;
END $$;

-- Removes consumers that no one reads for, puts those that are too far behind to the present, and removes what all have seen. Idle
-- cursors follow, so that what others have seen can go.
-- Reads: cursors, feed. Locks: what it removes, never waiting. Writes: cursors, layout, feed. Returns: nothing.
CREATE FUNCTION fn.purge_feed(keep_ms float8, p_limit int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  now float8 := fn.now_ms(); bound xid8;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  DELETE FROM whoa.cursors c WHERE c.part >= 0 AND c.consumer IN (
    SELECT o.consumer FROM whoa.cursors o WHERE o.part >= 0 GROUP BY o.consumer HAVING max(o.seen_at) < now - keep_ms);
  IF FOUND THEN PERFORM fn.count_kinds(); END IF;
  UPDATE whoa.cursors c SET seen = pg_current_snapshot(), upto = NULL, done = 0, missed_since = now - keep_ms, reader = NULL, until = 0,
    version = c.version + 1
  WHERE c.part >= 0 AND EXISTS (SELECT FROM fn.unseen(c.part, c.seen) f
    WHERE f.at < now - keep_ms AND f.kind = ANY (c.kinds) AND f.id > c.done);
  UPDATE whoa.cursors c SET seen = pg_current_snapshot(), done = 0, version = c.version + 1 WHERE c.part >= 0 AND c.upto IS NULL
    AND c.missed_since IS NULL AND EXISTS (SELECT FROM fn.unseen(c.part, c.seen))
    AND NOT EXISTS (SELECT FROM fn.unseen(c.part, c.seen) f WHERE f.kind = ANY (c.kinds) AND f.id > c.done);
  FOR of_part IN 0 .. 7 LOOP
    SELECT min(pg_snapshot_xmin(c.seen)::text::bigint)::text::xid8 INTO bound FROM whoa.cursors c WHERE c.part = of_part;
    DELETE FROM whoa.feed f USING (
      SELECT o.part, o.xid, o.id FROM whoa.feed o WHERE o.part = of_part AND (bound IS NULL OR o.xid < bound)
      ORDER BY o.part, o.xid, o.id LIMIT p_limit FOR UPDATE SKIP LOCKED
    ) old WHERE f.part = old.part AND f.xid = old.xid AND f.id = old.id;
  END LOOP;
END $$;

-- Reads: feed. Locks: what it removes. Writes: feed. Returns: nothing.
CREATE FUNCTION fn.forget_feed(p_tenant text, of_conversation text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM whoa.feed f WHERE f.part = fn.to_part(p_tenant) AND f.tenant = p_tenant
    AND (of_conversation IS NULL OR f.conversation = of_conversation);
END $$;

-- Returns when the oldest event happened that each consumer has not done.
-- Reads: cursors, feed. Locks and writes: nothing. Returns: consumers.
CREATE FUNCTION fn.feed_ages() RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT coalesce(json_agg(json_build_array(a.consumer, a.oldest)), '[]'::json) FROM (
    SELECT c.consumer, min(s.at) AS oldest FROM whoa.cursors c LEFT JOIN LATERAL (
      SELECT f.at FROM fn.unseen(c.part, c.seen) f WHERE f.id > c.done AND f.kind = ANY (c.kinds) ORDER BY f.id LIMIT 1
    ) s ON true WHERE c.part >= 0 GROUP BY c.consumer ORDER BY c.consumer) a);
END $$;

-- Reads: totals. Locks and writes: nothing. Returns: all of them.
CREATE FUNCTION fn.read_totals() RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT coalesce(json_object_agg(t.name, t.value), '{}'::json) FROM whoa.totals t WHERE t.name >= '');
END $$;

-- After a restore into another cluster the numbers of transactions begin again: what is left is stamped anew, and each cursor continues
-- after the last event that it had seen. The caller has locked `layout` against readers.
-- Reads: layout, cursors, feed. Locks: nothing. Writes: cursors, feed, layout. Returns: whether it was needed.
CREATE FUNCTION fn.adopt_feed() RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  here text := fn.cluster(); before pg_snapshot;
BEGIN
  IF (SELECT l.cluster = here FROM whoa.layout l) IS NOT FALSE THEN RETURN 'false'; END IF;
  before := pg_current_snapshot();
  UPDATE whoa.cursors c SET reader = NULL, until = 0, upto = NULL, seen = before, version = c.version + 1,
    done = coalesce((SELECT min(f.id) - 1 FROM fn.unseen(c.part, c.seen) f
      WHERE f.id > c.done OR (c.upto IS NOT NULL AND NOT pg_visible_in_snapshot(f.xid, c.upto))), (SELECT max(f.id) FROM whoa.feed f), 0)
  WHERE c.part >= 0;
  UPDATE whoa.feed f SET xid = pg_current_xact_id() WHERE f.part >= 0;
  UPDATE whoa.layout SET cluster = here;
  RETURN 'true';
END $$;
