-- How a task is claimed by its id, and which claims are valid. See `operations/take.ts`.

-- Reads: tasks, paused, inputs. Locks: session, conversation, task. Writes: tasks, sessions, conversations. Returns: task or refusal.
CREATE FUNCTION fn.claim(
  task_id text, session_id text, p_worker text, of_lease_ms float8, own_claim text, max_bytes float8, retention_ms float8,
  max_attempts int
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  session whoa.sessions; task whoa.tasks; until float8; now float8 := fn.now_ms();
  was_suspect boolean := EXISTS (SELECT FROM whoa.tasks t WHERE t.id = task_id AND fn.is_suspect(t.status, t.attempts));
  has_some boolean := EXISTS (SELECT FROM whoa.tasks t WHERE t.stage = 'held' AND t.session = session_id);
BEGIN
  -- Claims of one session run in parallel: a session that holds tasks need not be written, except for a suspect.
  IF has_some AND NOT was_suspect THEN
    SELECT * INTO session FROM whoa.sessions s WHERE s.id = session_id FOR SHARE;
  ELSE
    session := fn.open_session(session_id);
  END IF;
  IF session.is_over THEN RETURN json_build_object('result', 'session-ended'); END IF;
  -- A claim says nothing about other sessions, so it must not use up the request to sweep them.
  PERFORM fn.record_contact(of_lease_ms, now, false);
  PERFORM fn.lock_conversation(task_id);
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id FOR UPDATE;
  -- Don't read the clock before the lock: its last holder may have changed the task.
  now := fn.now_ms();
  IF task.stage = 'delayed' AND task.policy IS NOT NULL AND task.stage_at <= now THEN
    PERFORM fn.admit_debounced(task, now);
    SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id;
  END IF;
  IF task.id IS NULL OR task.ended_at <= now - retention_ms THEN RETURN json_build_object('result', 'not-found'); END IF;
  IF task.ended_at IS NOT NULL THEN RETURN json_build_object('result', 'too-late', 'status', task.status); END IF;
  IF task.stage = 'held' THEN
    IF task.session = session_id AND task.claim = own_claim THEN
      RETURN json_build_object('result', 'claimed', 'now', now, 'tasks', fn.taken(ARRAY[task_id], session_id, max_bytes));
    END IF;
    SELECT s.expires_at INTO until FROM whoa.sessions s WHERE s.id = task.session;
    RETURN json_build_object('result', 'held', 'until', coalesce(until, now));
  END IF;
  IF task.stage IN ('queued', 'parked') OR (task.status <> 'cancelling' AND EXISTS (
    SELECT FROM whoa.paused p WHERE (p.kind, p.name) IN (('agent', task.agent), ('tenant', task.tenant))))
  THEN RETURN json_build_object('result', 'waiting'); END IF;
  -- A task that only waits for its preferred worker can be claimed; the others have to wait.
  IF task.stage = 'delayed' THEN
    until := CASE WHEN task.policy IS NOT NULL OR task.worker IS NULL OR task.crashes > 0 THEN task.stage_at ELSE task.not_before END;
    IF until > now THEN RETURN json_build_object('result', 'waiting', 'until', until); END IF;
  END IF;
  IF fn.is_suspect(task.status, task.attempts) THEN
    -- It became one meanwhile: the session must be locked before the task.
    IF NOT was_suspect THEN RETURN json_build_object('result', 'waiting', 'until', now); END IF;
    IF fn.holds_suspect(session) THEN
      RETURN json_build_object('result', 'waiting', 'until', now + 1000 /*suspectWaitMs*/);
    END IF;
    IF task.charges >= max_attempts THEN
      PERFORM fn.fail_lost(task, now);
      RETURN json_build_object('result', 'too-late', 'status', 'failed');
    END IF;
    PERFORM fn.note_held(session_id, p_worker, of_lease_ms, NULL, NULL, task_id, now);
  ELSIF NOT has_some THEN
    PERFORM fn.note_held(session_id, p_worker, of_lease_ms, NULL, NULL, NULL, now);
  END IF;
  PERFORM fn.hold(ARRAY[task_id], session_id, own_claim, p_worker, now);
  RETURN json_build_object('result', 'claimed', 'now', now, 'tasks', fn.taken(ARRAY[task_id], session_id, max_bytes));
END $$;

-- Reads: tasks, inputs, history. Locks and writes: nothing. Returns: inputs, history, context.
CREATE FUNCTION fn.load(task_id text, own_epoch int, own_session text, own_claim text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
BEGIN
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id;
  IF NOT fn.is_own(task, own_epoch, own_session, own_claim) THEN RETURN json_build_object('result', 'lost'); END IF;
  RETURN fn.task_load(task);
END $$;

-- Returns whether the claim is still valid: by epoch, session and claim, never by time.
CREATE FUNCTION fn.is_own(task whoa.tasks, own_epoch int, own_session text, own_claim text)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN task.id IS NOT NULL AND task.epoch = own_epoch AND coalesce(task.session = own_session, false)
    AND coalesce(task.claim = own_claim, false) AND task.status IN ('running', 'cancelling');
END $$;
