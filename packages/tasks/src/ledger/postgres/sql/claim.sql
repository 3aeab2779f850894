-- How a task is claimed by its id, and which claims are valid. See `operations/take.ts`.

-- Reads: tasks, paused, inputs. Locks: session, conversation, task. Writes: tasks, sessions, conversations. Returns: task or refusal.
CREATE FUNCTION fn.claim(
  task_id text, session_id text, p_worker text, of_lease_ms float8, own_claim text, max_bytes float8, retention_ms float8,
  max_attempts int
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  session whoa.sessions; task whoa.tasks; refused json; now float8 := fn.now_ms(); shown json;
  was_suspect boolean; in_conversation boolean; has_some boolean;
BEGIN
  SELECT EXISTS (SELECT FROM whoa.tasks t WHERE t.stage = 'held' AND t.session = session_id),
    coalesce(fn.is_suspect(k.status, k.attempts), false), k.conversation IS NOT NULL
  INTO has_some, was_suspect, in_conversation FROM (SELECT) one LEFT JOIN whoa.tasks k ON k.id = task_id;
  -- Claims of one session run in parallel: a session that holds tasks need not be written, except for a suspect.
  IF has_some AND NOT was_suspect THEN
    SELECT * INTO session FROM whoa.sessions s WHERE s.id = session_id FOR SHARE;
  ELSE
    session := fn.open_session(session_id);
  END IF;
  IF session.is_over THEN RETURN json_build_object('result', 'session-ended'); END IF;
  -- A claim says nothing about other sessions, so it must not use up the request to sweep them.
  PERFORM fn.record_contact(of_lease_ms, now, false);
  IF in_conversation THEN PERFORM fn.lock_conversation(task_id); END IF;
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id FOR UPDATE;
  -- Don't read the clock before the lock: its last holder may have changed the task.
  now := fn.now_ms();
  IF task.stage = 'delayed' AND task.policy IS NOT NULL AND task.stage_at <= now THEN
    PERFORM fn.admit_debounced(task, now);
    SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id;
  END IF;
  IF task.stage = 'held' AND task.session = session_id AND task.claim = own_claim THEN
    RETURN json_build_object('result', 'claimed', 'now', now, 'tasks', fn.taken(ARRAY[task_id], session_id, max_bytes));
  END IF;
  refused := fn.refuse_claim(task, retention_ms, now);
  IF refused IS NOT NULL THEN RETURN refused; END IF;
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
  -- A statement of its own: `taken` is STABLE, and would not see it otherwise.
  shown := fn.hold(ARRAY[task_id], session_id, own_claim, p_worker, max_bytes, now);
  RETURN json_build_object('result', 'claimed', 'now', now, 'tasks', coalesce(shown, fn.taken(ARRAY[task_id], session_id, max_bytes)));
END $$;

-- Returns why no session can claim a locked task now; NULL: one can.
CREATE FUNCTION fn.refuse_claim(task whoa.tasks, retention_ms float8, now float8) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  until float8;
BEGIN
  IF task.id IS NULL OR task.ended_at <= now - retention_ms THEN RETURN json_build_object('result', 'not-found'); END IF;
  IF task.ended_at IS NOT NULL THEN RETURN json_build_object('result', 'too-late', 'status', task.status); END IF;
  IF task.stage = 'held' THEN
    SELECT s.expires_at INTO until FROM whoa.sessions s WHERE s.id = task.session;
    RETURN json_build_object('result', 'held', 'until', coalesce(until, now));
  END IF;
  IF task.stage IN ('queued', 'parked') OR (task.status <> 'cancelling' AND EXISTS (
    SELECT FROM whoa.paused p WHERE (p.kind, p.name) IN (('all', ''), ('agent', task.agent), ('tenant', task.tenant))))
  THEN RETURN json_build_object('result', 'waiting'); END IF;
  -- A task that only waits for its preferred worker can be claimed; the others have to wait.
  IF task.stage = 'delayed' THEN
    until := CASE WHEN task.policy IS NOT NULL OR task.worker IS NULL OR task.crashes > 0 THEN task.stage_at ELSE task.not_before END;
    IF until > now THEN RETURN json_build_object('result', 'waiting', 'until', until); END IF;
  END IF;
  RETURN NULL;
END $$;

-- Claims tasks by their ids in one step. Returns a result for each id; those without one are for `claim`: suspects, messages that
-- are due, and rows that are locked. So it waits for no one.
-- Reads: tasks, paused, inputs. Locks: session, tasks that no one has locked. Writes: tasks, sessions. Returns: tasks and refusals.
CREATE FUNCTION fn.claim_many(
  ids text[], session_id text, p_worker text, of_lease_ms float8, own_claim text, max_bytes float8, retention_ms float8
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  session whoa.sessions := fn.open_session(session_id); now float8 := fn.now_ms(); task whoa.tasks; refused json;
  picked text[] := '{}'; mine text[] := '{}'; refusals json[] := '{}'; locked text[]; shown json;
BEGIN
  IF session.is_over THEN
    RETURN json_build_object('now', now, 'refused', (SELECT json_agg(json_build_array(n, '{"result":"session-ended"}'::json))
      FROM unnest(ids) AS n));
  END IF;
  PERFORM fn.record_contact(of_lease_ms, now, false);
  locked := ARRAY(SELECT t.id FROM whoa.tasks t WHERE t.id = ANY (ids) FOR UPDATE SKIP LOCKED);
  -- Don't read the clock before the locks: their last holders may have changed the tasks.
  now := fn.now_ms();
  FOR task IN SELECT t.* FROM unnest(ids) WITH ORDINALITY AS n (id, ordinal) JOIN whoa.tasks t USING (id)
    WHERE t.id = ANY (locked) ORDER BY n.ordinal LOOP
    IF task.stage = 'held' AND task.session = session_id AND task.claim = own_claim THEN
      mine := mine || task.id;
      CONTINUE;
    END IF;
    CONTINUE WHEN task.stage = 'delayed' AND task.policy IS NOT NULL AND task.stage_at <= now;
    refused := fn.refuse_claim(task, retention_ms, now);
    IF refused IS NOT NULL THEN
      refusals := refusals || json_build_array(task.id, refused);
    ELSIF NOT fn.is_suspect(task.status, task.attempts) THEN
      picked := picked || task.id;
    END IF;
  END LOOP;
  IF cardinality(picked) > 0 THEN
    PERFORM fn.note_held(session_id, p_worker, of_lease_ms, NULL, NULL, NULL, now);
    shown := fn.hold(picked, session_id, own_claim, p_worker, max_bytes, now);
  END IF;
  IF shown IS NULL OR mine <> '{}' THEN
    mine := ARRAY(SELECT n.id FROM unnest(ids) WITH ORDINALITY AS n (id, ordinal) WHERE n.id = ANY (mine || picked) ORDER BY n.ordinal);
    shown := fn.taken(mine, session_id, max_bytes);
  END IF;
  RETURN json_build_object('now', now, 'refused', refusals, 'tasks', shown);
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
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT task.id IS NOT NULL AND task.epoch = own_epoch AND coalesce(task.session = own_session, false)
    AND coalesce(task.claim = own_claim, false) AND task.status IN ('running', 'cancelling')
$$;
