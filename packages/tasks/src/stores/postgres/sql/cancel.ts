/** What others ask of a task: cancel, send, read along. See `moves/cancel.ts`, `moves/stop-order.ts` and `moves/watch.ts`. */
export const CANCEL = `
CREATE FUNCTION whoa.rank_of(level text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN CASE level WHEN 'drain' THEN 1 WHEN 'abort' THEN 2 WHEN 'kill' THEN 3 ELSE 0 END;
END $$;

-- How hard a stop is by now: it climbs by itself as its deadlines pass.
CREATE FUNCTION whoa.level_at(level text, abort_at float8, kill_at float8, now float8)
RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN CASE
    WHEN level = 'kill' OR now >= kill_at THEN 'kill'
    WHEN level = 'abort' OR now >= abort_at THEN 'abort'
    ELSE level
  END;
END $$;

-- Orders the worker of a task, which is locked, to stop. Levels only rise, deadlines only come closer, the first reason stays.
CREATE FUNCTION whoa.order_stop(
  task_id text, reason json, level text, abort_ms float8, kill_ms float8, undo boolean, now float8
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
  reached text;
BEGIN
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id;
  reached := whoa.level_at(task.stop_level, task.stop_abort_at, task.stop_kill_at, now);
  IF task.stop_level IS NOT NULL AND whoa.rank_of(level) <= whoa.rank_of(reached)
    AND now + abort_ms >= task.stop_abort_at AND now + kill_ms >= task.stop_kill_at AND (task.stop_undo OR NOT undo)
  THEN RETURN 'already';
  END IF;
  UPDATE whoa.tasks t SET status = 'cancelling', stop_reason = coalesce(t.stop_reason, reason),
    stop_level = CASE WHEN whoa.rank_of(level) >= whoa.rank_of(reached) THEN level ELSE reached END,
    stop_abort_at = least(now + abort_ms, t.stop_abort_at), stop_kill_at = least(now + kill_ms, t.stop_kill_at),
    stop_undo = undo OR coalesce(t.stop_undo, false)
  WHERE t.id = task_id;
  PERFORM whoa.tell('cancel', task.id, task.tenant, task.worker, task.conversation);
  RETURN CASE WHEN task.stop_level IS NULL THEN 'accepted' ELSE 'escalated' END;
END $$;

-- Asks a task to stop. One that never started has ended with the answer. Its conversation is locked.
CREATE FUNCTION whoa.cancel_locked(
  task_id text, given text, at float8, level text, abort_ms float8, kill_ms float8, undo boolean
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
  reason json;
  answer text;
  now float8;
BEGIN
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id FOR UPDATE;
  now := whoa.now_ms();
  IF task.id IS NULL THEN RETURN json_build_object('answer', 'unknown'); END IF;
  IF task.ended_at IS NOT NULL THEN RETURN json_build_object('answer', 'too-late', 'status', task.status); END IF;
  reason := whoa.reason(given, coalesce(at, now));
  IF task.status = 'init' THEN
    PERFORM whoa.end_unstarted(task_id, reason, now);
    PERFORM whoa.leave_line(task_id, task.tenant, task.conversation, now);
    RETURN json_build_object('answer', 'accepted', 'status', 'cancelled', 'level', 'drain', 'reason', reason, 'killAt', now);
  END IF;
  answer := whoa.order_stop(task_id, reason, level, abort_ms, kill_ms, undo, now);
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id;
  RETURN json_build_object('answer', answer, 'status', 'cancelling', 'reason', task.stop_reason, 'killAt', task.stop_kill_at,
    'level', whoa.level_at(task.stop_level, task.stop_abort_at, task.stop_kill_at, now));
END $$;

CREATE FUNCTION whoa.cancel_task(
  of_tenant text, task_id text, given text, at float8, level text, abort_ms float8, kill_ms float8, undo boolean,
  kept_ms float8
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  line text;
  of_worker text;
  reason json;
  now float8;
BEGIN
  -- The first cancel of a running task, which nearly every cancel is, touches nothing but its row.
  SELECT t.worker, t.conversation INTO of_worker, line FROM whoa.tasks t
  WHERE t.id = task_id AND t.tenant = of_tenant AND t.status = 'running' FOR UPDATE;
  IF FOUND THEN
    -- Don't take the time earlier: the row may have had to be waited for.
    now := whoa.now_ms();
    reason := whoa.reason(given, coalesce(at, now));
    UPDATE whoa.tasks t SET status = 'cancelling', stop_level = level, stop_reason = reason, stop_undo = undo,
      stop_abort_at = now + abort_ms, stop_kill_at = now + kill_ms WHERE t.id = task_id;
    PERFORM whoa.tell('cancel', task_id, of_tenant, of_worker, line);
    RETURN json_build_object('answer', 'accepted', 'status', 'cancelling', 'reason', reason, 'killAt', now + kill_ms,
      -- A step of the ladder that lasts no time has been climbed.
      'level', CASE WHEN kill_ms = 0 THEN 'kill' WHEN abort_ms = 0 AND level = 'drain' THEN 'abort' ELSE level END);
  END IF;
  -- Ask before locking anything: nobody may hold up another tenant's task.
  SELECT t.conversation INTO line FROM whoa.tasks t WHERE t.id = task_id AND t.tenant = of_tenant
    AND (t.ended_at IS NULL OR t.ended_at > whoa.now_ms() - kept_ms);
  IF NOT FOUND THEN RETURN json_build_object('answer', 'unknown'); END IF;
  IF line IS NOT NULL THEN PERFORM whoa.lock_line(task_id); END IF;
  RETURN whoa.cancel_locked(task_id, given, at, level, abort_ms, kill_ms, undo);
END $$;

-- Asks the current task of a conversation to stop, and ends everything that waits.
CREATE FUNCTION whoa.cancel_conversation(
  of_tenant text, of_conversation text, given text, at float8, level text, abort_ms float8, kill_ms float8, undo boolean
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  line whoa.conversations;
  task_id text;
  receipt json := json_build_object('answer', 'unknown');
BEGIN
  SELECT * INTO line FROM whoa.conversations c
  WHERE c.tenant = of_tenant AND c.conversation = of_conversation FOR UPDATE;
  at := coalesce(at, whoa.now_ms());
  -- The current one last: as long as it lives, nobody's turn comes.
  FOREACH task_id IN ARRAY array_remove(line.gathering || line.waiting || line.current, NULL) LOOP
    receipt := whoa.cancel_locked(task_id, given, at, level, abort_ms, kill_ms, undo);
  END LOOP;
  RETURN receipt;
END $$;

CREATE FUNCTION whoa.send(of_tenant text, task_id text, command json, given_nonce text, kept_ms float8)
RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
  sent int;
BEGIN
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id AND t.tenant = of_tenant FOR UPDATE;
  IF task.id IS NULL OR task.ended_at <= whoa.now_ms() - kept_ms THEN RETURN json_build_object('answer', 'unknown'); END IF;
  -- Ask this first: it may have been carried out since, and the task may have ended.
  SELECT s.number INTO sent FROM whoa.sent s WHERE s.task = task_id AND s.nonce = given_nonce;
  IF FOUND THEN RETURN json_build_object('answer', 'accepted', 'number', sent); END IF;
  IF task.status NOT IN ('init', 'running') THEN RETURN json_build_object('answer', 'too-late', 'status', task.status); END IF;
  IF task.commands_waiting >= 100 THEN RETURN json_build_object('answer', 'full'); END IF;
  sent := whoa.add_command(task_id, command, NULL);
  INSERT INTO whoa.sent (task, nonce, number) VALUES (task_id, given_nonce, sent);
  DELETE FROM whoa.sent s WHERE s.task = task_id AND s.number <= sent - 100;
  RETURN json_build_object('answer', 'accepted', 'number', sent);
END $$;

-- Notes that somebody reads a journal along. Writes only when the note would otherwise soon be over.
CREATE FUNCTION whoa.read_along(of_tenant text, task_id text, watch_ms float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  now float8 := whoa.now_ms();
  was_until float8;
  task whoa.tasks;
BEGIN
  SELECT coalesce(t.watched_until, 0) INTO was_until FROM whoa.tasks t
  WHERE t.id = task_id AND t.tenant = of_tenant AND t.ended_at IS NULL;
  IF was_until IS NULL OR was_until >= now + watch_ms / 2 THEN RETURN; END IF;
  UPDATE whoa.tasks t SET watched_until = now + watch_ms
  WHERE t.id = task_id AND t.tenant = of_tenant AND t.ended_at IS NULL RETURNING * INTO task;
  IF FOUND AND now >= was_until THEN
    PERFORM whoa.tell('command', task.id, task.tenant, task.worker, task.conversation);
  END IF;
END $$;
`;
