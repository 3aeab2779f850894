-- The stages of a live task, who is notified, and how it ends. See `operations/stage.ts`.

-- Returns the name of the ready queue in which a task waits when it is ready. Any worker can settle a task.
CREATE FUNCTION fn.to_ready_queue(agent text, status text, undo boolean, attempts int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  IF status = 'cancelling' THEN RETURN CASE WHEN undo THEN '*!' /*UNDO*/ || agent ELSE '*' /*SETTLE*/ END; END IF;
  IF fn.has_engine(agent) THEN
    RETURN CASE WHEN fn.is_suspect(status, attempts) THEN '*}' /*OFFERED_SUSPECTS*/ ELSE '*~' /*OFFERED*/ END || agent;
  END IF;
  RETURN CASE WHEN fn.is_suspect(status, attempts) THEN '*?' /*SUSPECTS*/ || agent ELSE agent END;
END $$;

-- Returns whether an engine delivers an agent. Until the end of the transaction it then stays so: what becomes ready must not
-- be left behind when the engine is taken back. Not the other way round: workers take it, as before.
CREATE FUNCTION fn.has_engine(of_agent text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM whoa.engines e WHERE e.agent = of_agent) THEN RETURN false; END IF;
  PERFORM pg_advisory_xact_lock_shared(hashtextextended('whoa. engine ' || of_agent, 0));
  RETURN EXISTS (SELECT FROM whoa.engines e WHERE e.agent = of_agent);
END $$;

-- A task as engines are offered it.
CREATE FUNCTION fn.offered_task(task whoa.tasks) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN json_build_array(task.id, task.tenant, task.agent, task.priority, CASE WHEN task.stage = 'delayed' THEN task.stage_at END);
END $$;

-- Has the caller offer tasks after the commit.
CREATE FUNCTION fn.add_offers(offered whoa.tasks[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('whoa_store.hints', coalesce(current_setting('whoa_store.hints', true), '') || (SELECT string_agg(
    json_build_array('', json_build_array('offer', NULL, NULL, NULL, NULL, fn.offered_task(t))) || ',', '')
    FROM unnest(offered) AS t), true) WHERE cardinality(offered) > 0;
END $$;

-- Tells one worker that waits for it that a task is ready, or has it offered to its engine.
CREATE FUNCTION fn.tell_ready(task whoa.tasks, now float8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF task.ready_queue >= '*}' /*OFFERED_SUSPECTS*/ COLLATE "C" AND task.ready_queue < '+' /*AFTER_RESERVED*/ COLLATE "C" THEN
    PERFORM fn.add_offers(ARRAY[task]);
  ELSE
    PERFORM fn.wake_worker(task.ready_queue, now);
  END IF;
END $$;

CREATE FUNCTION fn.to_agent(ready_queue text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN ready_queue > '*' /*SETTLE*/ COLLATE "C" AND ready_queue < '+' /*AFTER_RESERVED*/ COLLATE "C"
    THEN substr(ready_queue, 3 /*reservedLength + 1*/) ELSE ready_queue END
$$;

-- Tells one worker that waits for it that something is ready; returns whether there was one. Never waits: a waiter that
-- another transaction is about to wake is left to it.
CREATE FUNCTION fn.wake_worker(of_queue text, now float8) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  found text;
BEGIN
  of_queue := fn.to_agent(of_queue);
  IF of_queue = '*' /*SETTLE*/ THEN
    SELECT w.worker INTO found FROM whoa.waiters w WHERE w.at >= now - 120000 /*idleWorkerTtlMs*/
    ORDER BY w.agent, w.at LIMIT 1 FOR UPDATE SKIP LOCKED;
  ELSE
    SELECT w.worker INTO found FROM whoa.waiters w WHERE w.agent = of_queue AND w.at >= now - 120000 /*idleWorkerTtlMs*/
    ORDER BY w.at LIMIT 1 FOR UPDATE SKIP LOCKED;
  END IF;
  IF found IS NULL THEN RETURN false; END IF;
  PERFORM fn.remove_waiter(found);
  PERFORM fn.add_hint(ARRAY['w:' || found], json_build_array('ready', of_queue, NULL, found));
  RETURN true;
END $$;

CREATE FUNCTION fn.remove_waiter(p_worker text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM whoa.waiters w USING (
    SELECT o.agent, o.at, o.worker FROM whoa.waiters o WHERE o.worker = p_worker FOR UPDATE SKIP LOCKED
  ) mine WHERE w.agent = mine.agent AND w.at = mine.at AND w.worker = mine.worker;
END $$;

-- Records that a worker waits for tasks; writes nothing if that was recorded recently.
CREATE FUNCTION fn.add_waiter(p_worker text, agents text[], now float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  parked text[];
BEGIN
  SELECT array_agg(w.agent) INTO parked FROM whoa.waiters w WHERE w.worker = p_worker AND w.at > now - 30000 /*idleWorkerTtlMs / 4*/;
  IF parked @> agents AND agents @> parked THEN RETURN; END IF;
  PERFORM fn.remove_waiter(p_worker);
  INSERT INTO whoa.waiters (worker, agent, at)
  SELECT DISTINCT p_worker, a.agent, now FROM unnest(agents) AS a (agent) ON CONFLICT DO NOTHING;
END $$;

-- Returns the next stage of a task: it waits for its start time, then for its preferred worker, then any worker can
-- take it.
CREATE FUNCTION fn.next_stage(not_before float8, worker text, now float8, OUT stage text, OUT stage_at float8)
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF not_before > now THEN
    stage := 'delayed';
    stage_at := not_before;
  ELSIF worker IS NOT NULL THEN
    stage := 'delayed';
    stage_at := now + 5000 /*preferredWorkerMs*/;
  ELSE
    stage := 'ready';
    stage_at := now;
  END IF;
END $$;

-- Notifies a waiting worker, or the preferred worker, where a task is now.
CREATE FUNCTION fn.announce(task whoa.tasks, now float8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF task.stage = 'ready' THEN
    PERFORM fn.tell_ready(task, now);
  ELSIF task.stage = 'delayed' AND task.not_before > now AND task.policy IS NULL THEN
    IF fn.has_engine(task.agent) THEN PERFORM fn.add_offers(ARRAY[task]); END IF;
  ELSIF task.stage = 'delayed' AND task.worker IS NOT NULL AND task.policy IS NULL AND (task.not_before > now) IS NOT TRUE THEN
    PERFORM fn.notify('preferred', task);
  END IF;
END $$;

-- Moves a locked task on when it is next.
CREATE FUNCTION fn.promote(task_id text, now float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
BEGIN
  UPDATE whoa.tasks t SET
    -- Rule: ready
    stage = 'ready', stage_at = now, policy = NULL, ready_queue = fn.to_ready_queue(t.agent, t.status, t.stop_undo, t.attempts)
  WHERE t.id = task_id AND t.worker IS NULL AND (t.not_before > now) IS NOT TRUE RETURNING * INTO task;
  IF NOT FOUND THEN
    UPDATE whoa.tasks t SET policy = NULL,
      -- Rule: delay; stageAt = CASE WHEN t.not_before > now THEN t.not_before ELSE now + 5000 /*preferredWorkerMs*/ END
      stage = 'delayed', stage_at = CASE WHEN t.not_before > now THEN t.not_before ELSE now + 5000 /*preferredWorkerMs*/ END,
      ready_queue = NULL
    WHERE t.id = task_id RETURNING * INTO task;
  END IF;
  PERFORM fn.announce(task, now);
END $$;

-- Makes a parked task ready. A task that is not parked stays where it is.
CREATE FUNCTION fn.wake(task whoa.tasks) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  now float8 := fn.now_ms();
BEGIN
  IF task.stage IS DISTINCT FROM 'parked' THEN RETURN; END IF;
  UPDATE whoa.tasks t SET
    -- Rule: wake and ready
    status = fn.next_status(t.status, 'release'), stage = 'ready', stage_at = now, policy = NULL,
    ready_queue = fn.to_ready_queue(t.agent, fn.next_status(t.status, 'release'), t.stop_undo, t.attempts)
  WHERE t.id = task.id RETURNING * INTO task;
  PERFORM fn.notify('preferred', task);
  PERFORM fn.tell_ready(task, now);
END $$;

-- Changes the orders of a task. They are sent to its worker until it confirms. A parked task needs a worker then.
CREATE FUNCTION fn.send_order(task_id text, kind text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
BEGIN
  UPDATE whoa.tasks t SET
    -- Rule: order
    order_number = t.order_number + 1, has_pending_orders = coalesce(t.stage = 'held', false)
  WHERE t.id = task_id RETURNING * INTO task;
  PERFORM fn.notify(kind, task);
  PERFORM fn.wake(task);
END $$;

-- Sends a command to the worker of a locked task.
CREATE FUNCTION fn.add_command(task_id text, command json, steered text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
BEGIN
  UPDATE whoa.tasks t SET commands_sent = t.commands_sent + 1, commands_waiting = t.commands_waiting + 1,
    -- Rule: order
    order_number = t.order_number + 1, has_pending_orders = coalesce(t.stage = 'held', false)
  WHERE t.id = task_id RETURNING * INTO task;
  INSERT INTO whoa.commands (task, number, steered, command) VALUES (task_id, task.commands_sent, steered, command);
  PERFORM fn.notify('command', task);
  PERFORM fn.wake(task);
  RETURN task.commands_sent;
END $$;

-- The only function that ends a task, which is locked. The caller must remove it from its conversation.
CREATE FUNCTION fn.end_task(
  task whoa.tasks, ending text, rest json, reason json, complete boolean, now float8, code text DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF fn.has_questions(task) THEN PERFORM fn.end_questions(task, now); END IF;
  UPDATE whoa.tasks t SET outcome_reason = reason, outcome_complete = complete,
    -- Rule: end; status = ending, outcome = rest
    commands_waiting = 0, status = ending, outcome = rest, ended_at = now, stage = NULL, stage_at = NULL, policy = NULL,
    has_pending_orders = false, lost_claim = NULL, ready_queue = NULL
  WHERE t.id = task.id;
  IF task.commands_waiting > 0 THEN DELETE FROM whoa.commands c WHERE c.task = task.id; END IF;
  IF task.stage = 'held' THEN PERFORM fn.free_slot(task.tenant, task.agent, now); END IF;
  PERFORM fn.tell('task.ended', task, ending, fn.end_code(ending, code, reason), NULL, now);
  PERFORM fn.notify('status', task);
END $$;

CREATE FUNCTION fn.end_unstarted(task_id text, reason json, now float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
BEGIN
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id FOR UPDATE;
  PERFORM fn.end_task(task, 'cancelled', '{}', reason, NULL, now);
END $$;

-- Called when a task no longer runs: tasks that waited because of a limit can be taken now.
CREATE FUNCTION fn.free_slot(p_tenant text, of_agent text, now float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  waiting text;
BEGIN
  IF fn.agent_cap() IS NOT NULL AND fn.has_engine(of_agent) THEN PERFORM fn.offer_first(of_agent, NULL); END IF;
  IF fn.tenant_cap() IS NOT NULL THEN
    PERFORM fn.offer_first(e.agent, p_tenant) FROM whoa.engines e;
    FOR waiting IN SELECT DISTINCT w.agent FROM whoa.waiters w LIMIT 100 LOOP
      IF EXISTS (SELECT FROM whoa.tasks t WHERE t.stage = 'ready' AND t.ready_queue IN (waiting, '*?' /*SUSPECTS*/ || waiting)
        AND t.tenant = p_tenant) THEN
        PERFORM fn.wake_worker(waiting, now);
      END IF;
    END LOOP;
  END IF;
  IF fn.agent_cap() IS NOT NULL AND EXISTS (SELECT FROM whoa.tasks t WHERE t.stage = 'ready'
    AND t.ready_queue IN (of_agent, '*?' /*SUSPECTS*/ || of_agent)) THEN
    PERFORM fn.wake_worker(of_agent, now);
  END IF;
END $$;

-- Has the first waiting task of an agent, or of its tenant, offered again.
CREATE FUNCTION fn.offer_first(of_agent text, p_tenant text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks; of_queue text;
BEGIN
  FOREACH of_queue IN ARRAY ARRAY['*}' /*OFFERED_SUSPECTS*/ || of_agent, '*~' /*OFFERED*/ || of_agent] LOOP
    IF p_tenant IS NULL THEN
      SELECT * INTO task FROM whoa.tasks t WHERE t.stage = 'ready' AND t.ready_queue = of_queue
      ORDER BY t.ready_queue, t.tenant, t.priority DESC, t.stage_at, t.id LIMIT 1 FOR UPDATE SKIP LOCKED;
    ELSE
      SELECT * INTO task FROM whoa.tasks t WHERE t.stage = 'ready' AND t.ready_queue = of_queue AND t.tenant = p_tenant
      ORDER BY t.priority DESC, t.stage_at, t.id LIMIT 1 FOR UPDATE SKIP LOCKED;
    END IF;
    CONTINUE WHEN task.id IS NULL;
    IF task.offered_at IS NOT NULL THEN UPDATE whoa.tasks t SET offered_at = NULL WHERE t.id = task.id; END IF;
    PERFORM fn.add_offers(ARRAY[task]);
    RETURN;
  END LOOP;
END $$;

-- Makes offers count as lost that were repeated until a given time. Returns how many.
CREATE FUNCTION fn.repeat_offers(of_agent text, p_tenant text, until float8) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  ready_queues text[] := ARRAY['*}' /*OFFERED_SUSPECTS*/ || of_agent, '*~' /*OFFERED*/ || of_agent]; ids text[];
BEGIN
  IF p_tenant IS NULL THEN
    ids := ARRAY(SELECT t.id FROM whoa.tasks t WHERE t.stage = 'ready' AND t.ready_queue = ANY (ready_queues)
      AND t.offered_at <= until LIMIT 1000 /*maxOffers*/ FOR UPDATE SKIP LOCKED);
  ELSE
    ids := ARRAY(SELECT t.id FROM whoa.tasks t WHERE t.stage = 'ready' AND t.ready_queue = ANY (ready_queues) AND t.tenant = p_tenant
      AND t.offered_at <= until LIMIT 1000 /*maxOffers*/ FOR UPDATE SKIP LOCKED);
  END IF;
  UPDATE whoa.tasks t SET offered_at = NULL WHERE t.id = ANY (ids);
  RETURN cardinality(ids);
END $$;
