-- Batches of operations in one transaction: one disk flush, one plan, one round trip. Only operations that touch no
-- more than their own row; the rest is `slow`, and runs one by one. Rows are always locked in the order of their ids,
-- so that no two transactions wait for each other.

-- Creates tasks that are in no conversation. Returns which of them are new.
-- Reads: tasks, capped. Locks: nothing that exists. Writes: tasks, inputs, capped, waiters. Returns: new ids.
CREATE FUNCTION fn.create_many(
  ids text[], tenants text[], agents text[], keys text[], preferred_workers text[], inputs json[], nonces text[], priorities int[],
  not_befores float8[], titles text[], traceparents text[], starters text[], max_ready int
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now float8 := fn.now_ms(); full_queues text[]; created text[]; ready_queue record; task whoa.tasks; is_heard boolean;
  is_delivered boolean := EXISTS (SELECT FROM whoa.engines e WHERE e.agent = ANY (agents));
  counts boolean := fn.counts_ready(max_ready, cardinality(ids));
BEGIN
  IF counts OR EXISTS (SELECT FROM whoa.capped) THEN
    SELECT array_agg(l.agent || ' ' || l.tenant) INTO full_queues FROM (
      SELECT DISTINCT n.agent, n.tenant FROM unnest(agents, tenants) AS n (agent, tenant)
    ) l WHERE fn.is_full(l.agent, l.tenant, max_ready, counts, now);
  END IF;
  WITH given AS MATERIALIZED (
    SELECT * FROM unnest(ids, tenants, agents, keys, preferred_workers, nonces, priorities, not_befores, titles, traceparents,
      starters, inputs) AS n (id, tenant, agent, key, preferred_worker, nonce, priority, not_before, title, traceparent, starter, input)
    WHERE full_queues IS NULL OR (n.agent || ' ' || n.tenant = ANY (full_queues)) IS NOT TRUE ORDER BY n.id
  ), inserted AS (
    INSERT INTO whoa.tasks (
      id, tenant, agent, title, key, nonce, priority, not_before, stage, stage_at, ready_queue, worker, input_owner, traceparent,
      started_by,
      -- Columns: create
      status, commands_waiting, epoch, attempts, crashes, order_number, position, journal_bytes, commands_sent, created_at
    )
    SELECT g.id, g.tenant, g.agent, g.title, g.key, CASE WHEN g.key IS NOT NULL THEN g.nonce END, g.priority, g.not_before,
      -- As in `next_stage`.
      CASE WHEN g.not_before > now OR g.preferred_worker IS NOT NULL THEN 'delayed' ELSE 'ready' END,
      CASE WHEN g.not_before > now THEN g.not_before
        WHEN g.preferred_worker IS NOT NULL THEN now + 5000 /*preferredWorkerMs*/ ELSE now END,
      CASE WHEN g.not_before > now OR g.preferred_worker IS NOT NULL THEN NULL
        WHEN is_delivered THEN fn.to_ready_queue(g.agent, 'init', false, 0) ELSE g.agent END,
      g.preferred_worker, g.id, g.traceparent, g.starter,
      -- Values: create
      'init', 0, 0, 0, 0, 0, 0, 0, 0, now
    FROM given g
    ON CONFLICT (id) DO NOTHING RETURNING id
  ), kept AS (
    INSERT INTO whoa.inputs (owner, position, input)
    SELECT g.id, 1, g.input FROM given g JOIN inserted p ON p.id = g.id ON CONFLICT DO NOTHING
  ) SELECT array_agg(p.id) INTO created FROM inserted p;
  IF created IS NULL THEN RETURN json_build_object('now', now, 'created', '[]'::json); END IF;
  FOR ready_queue IN
    SELECT n.agent AS agent, count(*) AS tasks FROM unnest(ids, agents, preferred_workers, not_befores)
      AS n (id, agent, preferred_worker, not_before)
    WHERE n.id = ANY (created) AND n.preferred_worker IS NULL AND (n.not_before > now) IS NOT TRUE GROUP BY n.agent
  LOOP
    CONTINUE WHEN is_delivered AND fn.has_engine(ready_queue.agent);
    FOR i IN 1 .. ready_queue.tasks LOOP EXIT WHEN NOT fn.wake_worker(ready_queue.agent, now); END LOOP;
  END LOOP;
  IF is_delivered THEN
    PERFORM fn.add_offers(array_agg(t)) FROM whoa.tasks t WHERE t.id = ANY (created) AND t.stage IS NOT DISTINCT FROM 'ready'
      AND t.ready_queue >= '*}' /*OFFERED_SUSPECTS*/ COLLATE "C" AND t.ready_queue < '+' /*AFTER_RESERVED*/ COLLATE "C";
  END IF;
  is_heard := fn.is_watched();
  IF is_heard OR array_remove(preferred_workers, NULL) <> '{}' OR is_delivered AND array_remove(not_befores, NULL) <> '{}' THEN
    FOR task IN SELECT * FROM whoa.tasks t WHERE t.id = ANY (created) LOOP
      IF is_heard OR task.worker IS NOT NULL THEN PERFORM fn.notify('status', task); END IF;
      IF task.stage = 'delayed' THEN PERFORM fn.announce(task, now); END IF;
    END LOOP;
  END IF;
  RETURN json_build_object('now', now, 'created', created);
END $$;

-- Returns whether anyone but workers wants to hear of changes.
CREATE FUNCTION fn.is_watched() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT FROM whoa.interests i JOIN whoa.inboxes b ON b.inbox = i.inbox AND b.until > clock_timestamp()
    WHERE i.name < 'w:');
END $$;

-- Ends tasks that are in no conversation. Returns the status of each; the others are for `finish`.
-- Reads: tasks. Locks: tasks in order of id. Writes: tasks, waiters. Returns: status of each.
CREATE FUNCTION fn.finish_many(
  ids text[], epochs int[], sessions text[], claims text[], actions text[], rests json[], reasons json[], completes boolean[],
  codes text[]
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now float8; ended json; tenants text[]; agents text[]; tasks text[]; endings text[]; whys text[];
BEGIN
  PERFORM 1 FROM whoa.tasks t WHERE t.id = ANY (ids) ORDER BY t.id FOR UPDATE;
  now := fn.now_ms();
  WITH done AS (
    UPDATE whoa.tasks t SET
      outcome_reason = CASE WHEN t.status = 'cancelling' OR a.ending = 'cancelled'
        THEN coalesce(t.stop_reason, a.reason, fn.reason('{"kind":"user"}', now)) ELSE a.reason END,
      outcome_complete = CASE WHEN t.status = 'cancelling' OR a.ending = 'cancelled'
        THEN coalesce(a.complete, a.ending <> 'cancelled') ELSE a.complete END,
      -- Rule: end; status = fn.next_status(t.status, a.ending), outcome = a.rest
      commands_waiting = 0, status = fn.next_status(t.status, a.ending), outcome = a.rest, ended_at = now, stage = NULL,
      stage_at = NULL, policy = NULL, has_pending_orders = false, lost_claim = NULL, ready_queue = NULL
    FROM unnest(ids, epochs, sessions, claims, actions, rests, reasons, completes, codes)
      AS a (id, epoch, session, claim, ending, rest, reason, complete, code)
    WHERE t.id = a.id AND t.epoch = a.epoch AND t.session = a.session AND t.claim = a.claim
      AND (t.status IN ('running', 'cancelling')) IS NOT DISTINCT FROM true AND t.conversation IS NULL
      AND t.commands_waiting = 0 AND coalesce(t.questions_open + t.questions_pending, 0) = 0
    RETURNING t.id, t.status, t.tenant, t.agent, t.worker, a.code, t.outcome_reason AS reason
  ) SELECT json_agg(json_build_array(d.id, d.status)), array_agg(d.tenant), array_agg(d.agent), array_agg(d.id),
    array_agg(d.status), array_agg(CASE WHEN d.status = 'success' THEN NULL ELSE fn.end_code(d.status, d.code, d.reason) END),
    set_config('whoa_store.hints', (
      SELECT string_agg(json_build_array(l.inbox, json_build_array('status', l.id, l.tenant, l.worker, NULL)) || ',', '') FROM (
        SELECT DISTINCT i.inbox, e.id, e.tenant, e.worker FROM done e
        JOIN whoa.interests i ON i.name = ANY (fn.listened(e.id, e.tenant, e.worker, NULL))
        JOIN whoa.inboxes b ON b.inbox = i.inbox AND b.until > clock_timestamp()
      ) l), true)
  INTO ended, tenants, agents, tasks, endings, whys FROM done d;
  IF ended IS NULL THEN RETURN '[]'; END IF;
  IF fn.is_fed('task.ended') THEN
    PERFORM fn.tell_all('task.ended', tenants, tasks, NULL, agents, endings, whys, NULL, now);
  END IF;
  IF fn.tenant_cap() IS NOT NULL OR fn.agent_cap() IS NOT NULL THEN
    PERFORM fn.free_slot(n.tenant, n.agent, now) FROM unnest(tenants, agents) AS n (tenant, agent);
  END IF;
  RETURN ended;
END $$;

-- Appends to journals, each of another task. Returns the orders of each by its ordinal; the others are for `append`, as are those
-- whose row is locked: their neighbours do not wait for it.
-- Reads: tasks, commands. Locks: tasks that no one has locked. Writes: journal, tasks. Returns: orders by ordinal.
CREATE FUNCTION fn.append_many(
  ids text[], epochs int[], sessions text[], claims text[], afters int[], counts int[], sizes float8[], progresses boolean[],
  activities text[], max_bytes float8, ordinals int[], positions int[], events json[], said float8[]
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  locked text[] := ARRAY(SELECT t.id FROM whoa.tasks t WHERE t.id = ANY (ids) FOR UPDATE SKIP LOCKED);
  now float8 := fn.now_ms(); orders json; has_readers boolean := fn.has_readers();
BEGIN
  WITH written AS (
    UPDATE whoa.tasks t SET position = t.position + a.count, journal_bytes = t.journal_bytes + a.size,
      attempts = CASE WHEN a.progress THEN 0 ELSE t.attempts END, charges = CASE WHEN a.progress THEN 0 ELSE t.charges END,
      activity = coalesce(a.activity, t.activity)
    FROM unnest(ids, epochs, sessions, claims, afters, counts, sizes, progresses, activities) WITH ORDINALITY
      AS a (id, epoch, session, claim, after, count, size, progress, activity, ordinal)
    WHERE t.id = a.id AND a.id = ANY (locked) AND t.epoch = a.epoch AND t.session = a.session AND t.claim = a.claim
      AND (t.status IN ('running', 'cancelling')) IS NOT DISTINCT FROM true AND t.position = a.after
      AND t.journal_bytes + a.size <= max_bytes
    RETURNING a.ordinal, t.id, t.tenant, t.worker, t.conversation, t.epoch, t.claim, t.order_number,
      t.stop_level IS NULL AND t.commands_waiting = 0 AND t.questions_open IS NULL AS is_plain
  ), kept AS (
    INSERT INTO whoa.journal (task, position, epoch, at, event, claim, said)
    SELECT w.id, e.position, w.epoch, now, e.event, w.claim, e.said
    FROM written w JOIN unnest(ordinals, positions, events, append_many.said) AS e (ordinal, position, event, said) ON e.ordinal = w.ordinal
  ) SELECT json_agg(json_build_array(w.ordinal, CASE WHEN w.is_plain AND NOT has_readers THEN to_json(w.order_number)
    ELSE (SELECT fn.task_orders(o, now) FROM whoa.tasks o WHERE o.id = w.id) END)), set_config('whoa_store.hints', (
    SELECT string_agg(json_build_array(l.inbox, json_build_array('journal', l.id, l.tenant, l.worker, l.conversation)) || ',', '')
    FROM (
      SELECT DISTINCT i.inbox, r.id, r.tenant, r.worker, r.conversation FROM written r
      JOIN whoa.interests i ON i.name = ANY (fn.listened(r.id, r.tenant, r.worker, r.conversation))
      JOIN whoa.inboxes b ON b.inbox = i.inbox AND b.until > clock_timestamp()
    ) l), true)
  INTO orders FROM written w;
  RETURN json_build_object('now', now, 'written', coalesce(orders, '[]'));
END $$;

-- Asks tasks to stop that are in no conversation, or that a worker holds. One receipt each, in request order; NULL: slow.
-- Reads: tasks. Locks: tasks in order of id. Writes: tasks, commands, conversations. Returns: receipts.
CREATE FUNCTION fn.cancel_many(
  tenants text[], ids text[], givens text[], ats float8[], levels text[], abort_mss float8[], kill_mss float8[], undos boolean[],
  retention_ms float8
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks; is_plain boolean; now float8; reason json; ordinal int;
  receipts json[] := array_fill(NULL::json, ARRAY[cardinality(ids)]);
BEGIN
  FOR ordinal IN SELECT n.ordinal FROM unnest(ids) WITH ORDINALITY AS n (id, ordinal) ORDER BY n.id, n.ordinal LOOP
    SELECT (t.status = 'running') AND (t.stage = 'held') AND coalesce(t.questions_open, 0) = 0 INTO is_plain
    FROM whoa.tasks t WHERE t.id = ids[ordinal] AND t.tenant IS NOT DISTINCT FROM tenants[ordinal]
      AND t.ended_at IS NULL AND (t.stage IS NOT DISTINCT FROM 'held' OR t.conversation IS NULL) FOR UPDATE;
    IF NOT FOUND THEN
      -- A single request has locked nothing yet, so it may lock its conversation.
      IF cardinality(ids) = 1 THEN
        receipts[ordinal] := fn.cancel_task(tenants[ordinal], ids[ordinal], givens[ordinal], ats[ordinal], levels[ordinal],
          abort_mss[ordinal], kill_mss[ordinal], undos[ordinal], retention_ms);
      END IF;
      CONTINUE;
    END IF;
    -- Don't read the clock earlier: locking the row may have taken long.
    now := fn.now_ms();
    reason := fn.reason(givens[ordinal], coalesce(ats[ordinal], now));
    IF is_plain THEN
      -- The first cancel of a task that a worker holds, as nearly every cancel is.
      UPDATE whoa.tasks t SET status = fn.next_status(t.status, 'cancel'), stop_reason = reason, stop_level = levels[ordinal],
        stop_abort_at = now + abort_mss[ordinal], stop_kill_at = now + kill_mss[ordinal], stop_undo = undos[ordinal],
        -- Rule: order
        order_number = t.order_number + 1, has_pending_orders = coalesce(t.stage = 'held', false)
      WHERE t.id = ids[ordinal] RETURNING * INTO task;
      PERFORM fn.notify('cancel', task);
      receipts[ordinal] := json_build_object('result', 'accepted', 'status', task.status, 'reason', reason,
        'killAt', task.stop_kill_at, 'level', fn.level_at(task.stop_level, task.stop_abort_at, task.stop_kill_at, now));
    ELSE
      SELECT * INTO task FROM whoa.tasks t WHERE t.id = ids[ordinal];
      receipts[ordinal] :=
        fn.stop_due_first(task, reason, levels[ordinal], abort_mss[ordinal], kill_mss[ordinal], undos[ordinal], now);
    END IF;
  END LOOP;
  RETURN array_to_json(receipts);
END $$;
