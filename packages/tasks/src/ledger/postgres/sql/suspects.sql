-- Tasks whose workers crashed: which of them are charged, and how a crash is taken back. See `rules/suspects.ts`.

CREATE FUNCTION fn.is_suspect(status text, attempts int) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT status <> 'cancelling' AND attempts >= 2 /*suspectAttempts*/
$$;

-- Returns whether tasks are ready in ready queues of suspects or of tasks to undo, which is rare.
CREATE FUNCTION fn.has_reserved() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT FROM whoa.tasks t WHERE t.stage = 'ready' AND t.ready_queue > '*' /*SETTLE*/
    AND t.ready_queue < '*~' /*OFFERED*/);
END $$;

-- Returns whether a session holds a suspect. Progress, a release or the end of the task change that.
CREATE FUNCTION fn.holds_suspect(session whoa.sessions) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN session.suspect IS NOT NULL AND EXISTS (SELECT FROM whoa.tasks t WHERE t.id = session.suspect
    AND t.stage IS NOT DISTINCT FROM 'held' AND t.session = holds_suspect.session.id AND t.attempts > 2 /*suspectAttempts*/);
END $$;

-- Locks one suspect and returns its id. Those that have crashed too many sessions fail instead.
CREATE FUNCTION fn.pick_suspect(agents text[], after_tenant text, max_attempts int, now float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  paused text[] := ARRAY(SELECT p.name FROM whoa.paused p WHERE p.kind = 'tenant');
  of_agent text; p_tenant text; found text;
BEGIN
  FOREACH of_agent IN ARRAY fn.unpaused(agents) LOOP
    FOREACH p_tenant IN ARRAY fn.tenants_in('*?' /*SUSPECTS*/ || of_agent, after_tenant, 10 /*maxPurged*/, paused) LOOP
      CONTINUE WHEN fn.free_slots(of_agent, p_tenant, '{}') <= 0;
      found := fn.pick_suspect_in('*?' /*SUSPECTS*/ || of_agent, p_tenant, NULL, max_attempts, now);
      IF found IS NOT NULL THEN RETURN found; END IF;
    END LOOP;
  END LOOP;
  RETURN NULL;
END $$;

-- The same in one ready queue, for any task or a named one.
CREATE FUNCTION fn.pick_suspect_in(of_queue text, p_tenant text, of_id text, max_attempts int, now float8) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
BEGIN
  FOR task IN
    SELECT * FROM whoa.tasks t WHERE t.stage = 'ready' AND t.ready_queue = of_queue AND t.tenant = p_tenant
      AND (of_id = t.id) IS NOT FALSE
    ORDER BY t.priority DESC, t.stage_at, t.id LIMIT 10 /*maxPurged*/
  LOOP
    -- A conversation is locked before its tasks: skip it if another transaction has it.
    IF task.charges >= max_attempts AND task.conversation IS NOT NULL THEN
      PERFORM 1 FROM whoa.conversations c WHERE c.tenant = task.tenant AND c.conversation = task.conversation FOR UPDATE SKIP LOCKED;
      CONTINUE WHEN NOT FOUND;
    END IF;
    SELECT * INTO task FROM whoa.tasks t WHERE t.id = task.id AND t.stage IS NOT DISTINCT FROM 'ready'
      AND t.epoch = task.epoch AND t.charges = task.charges AND t.status IS NOT DISTINCT FROM task.status
    FOR UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    IF task.charges < max_attempts THEN RETURN task.id; END IF;
    PERFORM fn.fail_lost(task, now);
  END LOOP;
  RETURN NULL;
END $$;

-- See `toDeathDelay`.
CREATE FUNCTION fn.crash_backoff(task_id text, crashes int) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  sum int := crashes + (SELECT sum(ascii(c)) FROM unnest(string_to_array(task_id, NULL)) AS letters (c));
BEGIN
  RETURN CASE WHEN crashes <= 1 THEN 0 ELSE least(60000 /*maxCrashBackoffMs*/,
    500 /*crashBackoffMs*/ * 2 ^ (crashes - 2) * (1 + (sum % 8 /*deathDelaySteps*/)::float8 / 8 /*deathDelaySteps*/)) END;
END $$;

-- Takes a crash back: the worker that seemed to be lost is alive, and has stopped its work.
CREATE FUNCTION fn.release_late(task whoa.tasks, now float8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  -- The attempt of its next worker still counts, and progress may have reset its own.
  UPDATE whoa.tasks t SET crashes = t.crashes - 1, attempts = t.attempts - (t.attempts > (t.stage = 'held')::int)::int,
    charges = greatest(0, t.charges - t.is_charged::int), is_charged = false, lost_claim = NULL, released = t.lost_claim
  WHERE t.id = task.id;
  IF task.stage IN ('held', 'parked') THEN RETURN; END IF;
  UPDATE whoa.tasks t SET
    -- Rule: ready
    stage = 'ready', stage_at = now, policy = NULL, ready_queue = fn.to_ready_queue(t.agent, t.status, t.stop_undo, t.attempts)
  WHERE t.id = task.id RETURNING * INTO task;
  PERFORM fn.notify('preferred', task);
  PERFORM fn.tell_ready(task, now);
END $$;

-- Ends a locked task, in its locked conversation, whose workers kept crashing.
CREATE FUNCTION fn.fail_lost(task whoa.tasks, now float8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM fn.end_task(task, 'failed', json_build_object('error', json_build_object('message',
    format(
      'its workers were lost %s times: fix what ends them, then requeue the task' /*lostMessage*/,
      task.crashes), 'code', 'WORKERS_LOST')), NULL, NULL, now, 'WORKERS_LOST');
  PERFORM fn.leave_conversation(task, now);
END $$;
