-- How workers keep their tasks, and how tasks are taken away. See `operations/session.ts`.

-- Records a worker's contact. After an outage, a failover or a clock step, when no worker could beat, all sessions get
-- another lease. Returns whether there is something to sweep: expired sessions, ended tasks past their retention, waiting
-- ones past their deadline, or questions that expired. One worker at a time is asked. may_sweep: the worker
-- learns that a sweep is due, or sweeps
-- itself; others must not use the request up.
CREATE FUNCTION fn.record_contact(of_lease_ms float8, now float8, may_sweep boolean, waits boolean DEFAULT false) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  state whoa.store_state; first float8; expired boolean; has_old boolean := false;
BEGIN
  SELECT * INTO state FROM whoa.store_state;
  SELECT s.expires_at INTO first FROM whoa.sessions s WHERE s.expires_at IS NOT NULL ORDER BY s.expires_at LIMIT 1;
  IF state.last_contact_at >= 0 AND state.last_contact_at <= now AND now - state.last_contact_at < of_lease_ms * 0.125 /*contactShare*/
    AND (may_sweep AND first <= now AND now >= state.grace_until
      AND now - state.sweep_requested_at >= 1000 /*sweepRequestIntervalMs*/) IS NOT TRUE
  THEN RETURN false; END IF;
  -- A transaction that writes it now does the same; only a sweep must wait for the result.
  IF waits THEN
    SELECT * INTO state FROM whoa.store_state FOR UPDATE;
  ELSE
    SELECT * INTO state FROM whoa.store_state FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN false; END IF;
  END IF;
  IF state.last_contact_at < 0 THEN state.last_contact_at := now; END IF;
  IF state.last_contact_at > now THEN
    -- The clock was set back: shorten leases that would now last too long.
    UPDATE whoa.sessions s SET expires_at = now + s.lease_ms WHERE s.expires_at > now + of_lease_ms;
    state.last_contact_at := now;
    state.grace_until := least(state.grace_until, now + of_lease_ms);
    state.sweep_requested_at := least(state.sweep_requested_at, now);
  END IF;
  IF now - state.last_contact_at > of_lease_ms * 0.5 /*outageShare*/ AND first IS NOT NULL AND NOT state.grace_granted THEN
    state.grace_until := now + of_lease_ms;
    state.grace_granted := true;
  END IF;
  IF now - state.last_contact_at >= of_lease_ms * 0.125 /*contactShare*/ THEN
    state.last_contact_at := now;
    has_old := EXISTS (SELECT FROM whoa.tasks t WHERE t.ended_at <= now - coalesce(
      (SELECT s.value FROM whoa.settings s WHERE s.name = 'retentionMs'), 604800000 /*retentionMs*/))
      OR EXISTS (SELECT FROM whoa.tasks t WHERE t.status = 'init' AND t.deadline <= now) OR fn.has_expired(now);
  END IF;
  expired := coalesce(may_sweep AND (has_old OR first <= now AND now >= state.grace_until)
    AND now - state.sweep_requested_at >= 1000 /*sweepRequestIntervalMs*/, false);
  IF expired THEN state.sweep_requested_at := now; END IF;
  UPDATE whoa.store_state SET last_contact_at = state.last_contact_at, grace_until = state.grace_until, grace_granted = state.grace_granted,
    sweep_requested_at = state.sweep_requested_at;
  RETURN expired;
END $$;

-- Keeps a session alive, however late the beat, as long as no task was taken from it.
-- Reads: sessions, tasks, commands. Locks: session, confirmed tasks. Writes: sessions, tasks, store_state. Returns: unconfirmed orders.
CREATE FUNCTION fn.heartbeat(
  session_id text, ids text[], epochs int[], claims text[], numbers int[], p_held_count int
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  session whoa.sessions; task whoa.tasks; orders json[] := '{}'; expired boolean; more boolean := false;
  held int := p_held_count; now float8;
BEGIN
  SELECT * INTO session FROM whoa.sessions s WHERE s.id = session_id FOR UPDATE;
  IF session.id IS NULL OR session.is_over THEN RETURN json_build_object('result', 'session-ended'); END IF;
  now := fn.now_ms();
  expired := fn.record_contact(session.lease_ms, now, true);
  -- Don't wait for the lock: if another transaction holds it, the next beat does this.
  IF (SELECT p.grace_granted FROM whoa.store_state p) THEN
    UPDATE whoa.store_state SET grace_granted = false
    WHERE EXISTS (SELECT FROM whoa.store_state FOR UPDATE SKIP LOCKED);
  END IF;
  IF p_held_count <= 1000 OR floor(now / 60000) <> floor(session.last_held_at / 60000) THEN
    SELECT count(*) INTO held FROM whoa.tasks t WHERE t.stage = 'held' AND t.session = session_id;
  END IF;
  IF held > 0 THEN
    UPDATE whoa.sessions s SET expires_at = now + s.lease_ms, last_held_at = now WHERE s.id = session_id;
  END IF;
  -- Only the current holder, and only the latest order: a former holder must not confirm for a new one.
  IF cardinality(ids) > 0 THEN
    PERFORM 1 FROM whoa.tasks t WHERE t.id = ANY (ids) ORDER BY t.id FOR UPDATE;
    UPDATE whoa.tasks t SET has_pending_orders = false FROM unnest(ids, epochs, claims, numbers) AS c (id, epoch, claim, number)
    WHERE t.id = c.id AND t.has_pending_orders IS NOT DISTINCT FROM true AND t.session = session_id AND t.epoch = c.epoch
      AND t.claim = c.claim AND t.order_number = c.number;
  END IF;
  FOR task IN
    SELECT * FROM whoa.tasks t WHERE t.stage = 'held' AND t.session = session_id AND t.has_pending_orders LIMIT 201 /*maxOrders + 1*/
  LOOP
    IF cardinality(orders) = 200 /*maxOrders*/ THEN
      more := true;
    ELSE
      orders := orders || json_build_object('id', task.id, 'epoch', task.epoch, 'claim', task.claim, 'orders', fn.task_orders(task, now));
    END IF;
  END LOOP;
  RETURN json_build_object('result', 'alive', 'orders', orders, 'hasMore', more, 'shouldReconcile', held <> p_held_count,
    'shouldSweep', expired, 'now', now);
END $$;

-- Reads: tasks. Locks and writes: nothing. Returns: the claims of a session.
CREATE FUNCTION fn.held(session_id text) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT coalesce(json_agg(json_build_object('id', t.id, 'epoch', t.epoch, 'claim', t.claim)), '[]')
    FROM whoa.tasks t WHERE t.stage = 'held' AND t.session = session_id);
END $$;

-- Ends waiting tasks whose deadline has passed, whoever runs their agents. Returns whether there are more.
CREATE FUNCTION fn.end_overdue(p_limit int, now float8) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  task_id text; task whoa.tasks;
BEGIN
  FOREACH task_id IN ARRAY ARRAY(SELECT t.id FROM whoa.tasks t WHERE t.status = 'init' AND t.deadline <= now
    ORDER BY t.deadline, t.id LIMIT p_limit) LOOP
    PERFORM fn.lock_conversation(task_id);
    SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id FOR UPDATE;
    PERFORM fn.apply_due(task, now);
  END LOOP;
  RETURN EXISTS (SELECT FROM whoa.tasks t WHERE t.status = 'init' AND t.deadline <= now);
END $$;

-- Ends expired sessions and frees their tasks, ends overdue ones, and closes questions that expired, a few at a time.
-- Reads: sessions, tasks. Locks: store_state, session, conversation, task. Writes: sessions, tasks, questions. Returns: how many it freed.
CREATE FUNCTION fn.sweep(p_limit int) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  session whoa.sessions; now float8 := fn.now_ms(); until float8; next_at float8; reclaimed int := 0;
  more_overdue boolean := fn.end_overdue(p_limit, now); more_expired boolean := fn.expire_questions(p_limit, now);
BEGIN
  SELECT * INTO session FROM whoa.sessions s WHERE s.expires_at IS NOT NULL ORDER BY s.expires_at LIMIT 1;
  IF session.id IS NOT NULL THEN PERFORM fn.record_contact(session.lease_ms, now, true, true); END IF;
  SELECT p.grace_until INTO until FROM whoa.store_state p;
  IF session.id IS NOT NULL AND now < until THEN
    RETURN json_build_object('reclaimed', 0, 'hasMore', more_overdue OR more_expired, 'nextExpiryAt', until, 'now', now);
  END IF;
  WHILE reclaimed < p_limit LOOP
    -- Skips a session that beats, takes or is swept at this moment.
    SELECT * INTO session FROM whoa.sessions s WHERE s.expires_at <= now ORDER BY s.expires_at LIMIT 1 FOR UPDATE SKIP LOCKED;
    EXIT WHEN NOT FOUND;
    reclaimed := reclaimed + fn.reclaim_some(session, p_limit - reclaimed, now);
  END LOOP;
  SELECT s.expires_at INTO next_at FROM whoa.sessions s WHERE s.expires_at IS NOT NULL ORDER BY s.expires_at LIMIT 1;
  RETURN json_build_object('reclaimed', reclaimed, 'hasMore', more_overdue OR more_expired OR coalesce(next_at <= now, false),
    'nextExpiryAt', next_at, 'now', now);
END $$;

CREATE FUNCTION fn.reclaim_some(session whoa.sessions, p_limit int, now float8) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  ids text[] := ARRAY(SELECT t.id FROM whoa.tasks t
    WHERE t.stage = 'held' AND t.session = reclaim_some.session.id ORDER BY t.id LIMIT p_limit);
  task_id text;
BEGIN
  -- In the step that frees the first task: after that no beat counts. A session without tasks is only idle.
  IF cardinality(ids) > 0 THEN session.is_over := true; END IF;
  FOREACH task_id IN ARRAY ids LOOP PERFORM fn.reclaim(task_id, session, now); END LOOP;
  UPDATE whoa.sessions s SET is_over = session.is_over, expires_at =
    CASE WHEN EXISTS (SELECT FROM whoa.tasks t WHERE t.stage = 'held' AND t.session = reclaim_some.session.id) THEN s.expires_at END
  WHERE s.id = session.id;
  RETURN cardinality(ids);
END $$;

-- Takes a task away from a session that is over. Its epoch increases, so later writes of its worker do not count.
CREATE FUNCTION fn.reclaim(task_id text, of_session whoa.sessions, now float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks; charged boolean; delay_ms float8;
BEGIN
  PERFORM fn.lock_conversation(task_id);
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id AND t.stage IS NOT DISTINCT FROM 'held'
    AND t.session = of_session.id FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  -- A session holds one suspect at most. If it crashed, that task is charged, and none of its neighbours.
  charged := coalesce(task.status = 'running' AND task.id = of_session.suspect AND task.attempts > 2 /*suspectAttempts*/, false);
  IF task.status = 'running' AND task.crashes + 1 >= 20 /*maxCrashes*/ THEN
    UPDATE whoa.tasks t SET
      -- Rule: reclaim; charges = t.charges + charged::int, isCharged = charged, lostClaim = t.claim
      status = fn.next_status(t.status, 'release'), epoch = t.epoch + 1, crashes = t.crashes + 1,
      charges = t.charges + charged::int, is_charged = charged, lost_claim = t.claim, session = NULL, claim = NULL, worker = NULL,
      has_pending_orders = false
    WHERE t.id = task_id RETURNING * INTO task;
    PERFORM fn.fail_lost(task, now);
    RETURN;
  END IF;
  delay_ms := CASE WHEN task.status = 'cancelling' THEN 0 ELSE fn.crash_backoff(task_id, task.crashes + 1) END;
  IF delay_ms > 0 THEN
    UPDATE whoa.tasks t SET
      -- Rule: reclaim and delay; charges = t.charges + charged::int, isCharged = charged, lostClaim = t.claim, stageAt = now + delay_ms
      status = fn.next_status(t.status, 'release'), epoch = t.epoch + 1, crashes = t.crashes + 1,
      charges = t.charges + charged::int, is_charged = charged, lost_claim = t.claim, session = NULL, claim = NULL, worker = NULL,
      has_pending_orders = false, stage = 'delayed', stage_at = now + delay_ms, ready_queue = NULL
    WHERE t.id = task_id RETURNING * INTO task;
  ELSE
    UPDATE whoa.tasks t SET
      -- Rule: reclaim and ready; charges = t.charges + charged::int, isCharged = charged, lostClaim = t.claim
      status = fn.next_status(t.status, 'release'), epoch = t.epoch + 1, crashes = t.crashes + 1,
      charges = t.charges + charged::int, is_charged = charged, lost_claim = t.claim, session = NULL, claim = NULL, worker = NULL,
      has_pending_orders = false, stage = 'ready', stage_at = now, policy = NULL,
      ready_queue = fn.to_ready_queue(t.agent, fn.next_status(t.status, 'release'), t.stop_undo, t.attempts)
    WHERE t.id = task_id RETURNING * INTO task;
  END IF;
  PERFORM fn.free_slot(task.tenant, task.agent, now);
  IF delay_ms = 0 THEN PERFORM fn.tell_ready(task, now); END IF;
END $$;
