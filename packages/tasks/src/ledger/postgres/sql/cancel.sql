-- Requests of callers: cancel, send, watch. See `operations/cancel.ts` and `operations/stop-order.ts`.

-- Reads: tasks. Locks: the task if held, else conversation, task. Writes: tasks, commands, conversations. Returns: a receipt.
CREATE FUNCTION fn.cancel_task(
  p_tenant text, task_id text, given text, at float8, level text, abort_ms float8, kill_ms float8, undo boolean,
  retention_ms float8
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks; now float8;
BEGIN
  -- The first cancel of a task that a worker holds, as nearly every cancel is, touches only its row.
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id AND t.tenant IS NOT DISTINCT FROM p_tenant
    AND t.stage IS NOT DISTINCT FROM 'held' FOR UPDATE;
  IF FOUND THEN
    -- Don't read the clock earlier: locking the row may have taken long.
    now := fn.now_ms();
    RETURN fn.cancel_started(task, fn.reason(given, coalesce(at, now)), level, abort_ms, kill_ms, undo, now);
  END IF;
  -- Check before locking anything: a tenant must not hold up another tenant's task.
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id AND t.tenant IS NOT DISTINCT FROM p_tenant;
  IF NOT FOUND OR task.ended_at <= fn.now_ms() - retention_ms THEN RETURN json_build_object('result', 'not-found'); END IF;
  IF task.ended_at IS NOT NULL THEN RETURN json_build_object('result', 'too-late', 'status', task.status); END IF;
  PERFORM fn.lock_conversation(task_id);
  RETURN fn.cancel_locked(task_id, given, at, level, abort_ms, kill_ms, undo);
END $$;

CREATE FUNCTION fn.cancel_started(
  task whoa.tasks, reason json, level text, abort_ms float8, kill_ms float8, undo boolean, now float8
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  ordered record; stopped whoa.tasks;
BEGIN
  SELECT * INTO ordered FROM fn.order_stop(task, reason, level, abort_ms, kill_ms, undo, now);
  stopped := ordered.stopped;
  RETURN json_build_object('result', ordered.answer, 'status', 'cancelling', 'reason', stopped.stop_reason,
    'killAt', stopped.stop_kill_at,
    'level', fn.level_at(stopped.stop_level, stopped.stop_abort_at, stopped.stop_kill_at, now));
END $$;

-- Asks a task to stop whose conversation is locked.
CREATE FUNCTION fn.cancel_locked(
  task_id text, given text, at float8, level text, abort_ms float8, kill_ms float8, undo boolean
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks; now float8;
BEGIN
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id FOR UPDATE;
  now := fn.now_ms();
  RETURN fn.stop_due_first(task, fn.reason(given, coalesce(at, now)), level, abort_ms, kill_ms, undo, now);
END $$;

-- Asks a locked task to stop, after its deadline if that has passed.
CREATE FUNCTION fn.stop_due_first(
  task whoa.tasks, reason json, level text, abort_ms float8, kill_ms float8, undo boolean, now float8
) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  IF fn.is_overdue(task, now) THEN
    PERFORM fn.apply_due(task, now);
    SELECT * INTO task FROM whoa.tasks t WHERE t.id = task.id;
  END IF;
  RETURN fn.stop_task(task, reason, level, abort_ms, kill_ms, undo, now);
END $$;

-- Asks a locked task to stop. A task that never started ends immediately: its conversation is locked.
CREATE FUNCTION fn.stop_task(
  task whoa.tasks, reason json, level text, abort_ms float8, kill_ms float8, undo boolean, now float8
) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  IF task.id IS NULL THEN RETURN json_build_object('result', 'not-found'); END IF;
  IF task.ended_at IS NOT NULL THEN RETURN json_build_object('result', 'too-late', 'status', task.status); END IF;
  IF fn.has_started(task) THEN RETURN fn.cancel_started(task, reason, level, abort_ms, kill_ms, undo, now); END IF;
  IF task.steered IS NOT NULL THEN PERFORM fn.withdraw_steer(task.id, task.steered); END IF;
  PERFORM fn.end_task(task, 'cancelled', '{}', reason, NULL, now);
  PERFORM fn.leave_conversation(task, now);
  RETURN json_build_object('result', 'accepted', 'status', 'cancelled', 'level', 'drain', 'reason', reason, 'killAt', now);
END $$;

-- Withdraws a message that the current task has not read yet. Their conversation is locked.
CREATE FUNCTION fn.withdraw_steer(message text, reader text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM whoa.commands c WHERE c.task = reader AND c.steered = message;
  IF NOT FOUND THEN RETURN; END IF;
  UPDATE whoa.tasks t SET commands_waiting = t.commands_waiting - 1 WHERE t.id = reader;
  PERFORM fn.send_order(reader, 'command');
END $$;

-- Asks the current task of a conversation to stop, and ends all waiting tasks.
-- Reads: conversations, tasks. Locks: conversation, its tasks. Writes: tasks, commands, conversations. Returns: the last receipt.
CREATE FUNCTION fn.cancel_conversation(
  p_tenant text, of_conversation text, given text, at float8, level text, abort_ms float8, kill_ms float8, undo boolean
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  conversation_row whoa.conversations; task_id text; receipt json := json_build_object('result', 'not-found');
BEGIN
  SELECT * INTO conversation_row FROM whoa.conversations c
  WHERE c.tenant = p_tenant AND c.conversation = of_conversation FOR UPDATE;
  at := coalesce(at, fn.now_ms());
  -- The current task last: while it is live, no other task can start.
  FOREACH task_id IN ARRAY array_remove(conversation_row.debouncing || conversation_row.waiting || conversation_row.current, NULL) LOOP
    receipt := fn.cancel_locked(task_id, given, at, level, abort_ms, kill_ms, undo);
  END LOOP;
  RETURN receipt;
END $$;

-- Sends a command to the worker of a task. A message withdraws its open questions.
-- Reads: tasks, command_nonces. Locks: task. Writes: commands, command_nonces, questions, tasks. Returns: number or refusal.
CREATE FUNCTION fn.send(p_tenant text, task_id text, command json, command_type text, p_nonce text, retention_ms float8)
RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks; given int;
BEGIN
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id AND t.tenant IS NOT DISTINCT FROM p_tenant FOR UPDATE;
  IF task.id IS NULL OR task.ended_at <= fn.now_ms() - retention_ms THEN RETURN json_build_object('result', 'not-found'); END IF;
  -- Check this first: the command may have been carried out since, and the task may have ended.
  SELECT s.number INTO given FROM whoa.command_nonces s WHERE s.task = task_id AND s.nonce = p_nonce;
  IF FOUND THEN RETURN json_build_object('result', 'accepted', 'number', given); END IF;
  IF task.status NOT IN ('init', 'running') THEN RETURN json_build_object('result', 'too-late', 'status', task.status); END IF;
  IF task.commands_waiting >= 100 /*maxCommands*/ THEN RETURN json_build_object('result', 'full'); END IF;
  IF command_type = 'steer' THEN PERFORM fn.close_open(task, 'withdrawn', fn.now_ms()); END IF;
  given := fn.add_command(task_id, command, NULL);
  INSERT INTO whoa.command_nonces (task, nonce, number) VALUES (task_id, p_nonce, given);
  DELETE FROM whoa.command_nonces s WHERE s.task = task_id AND s.number <= given - 100 /*maxNonces*/;
  RETURN json_build_object('result', 'accepted', 'number', given);
END $$;
