-- Conversations: which task is next, which wait, which are superseded. See `operations/queue.ts`.

-- Locks the conversation of a task. An operation that touches several tasks must lock the conversation first, then its
-- tasks, so that no two operations wait for each other.
CREATE FUNCTION fn.lock_conversation(task_id text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  p_tenant text; of_conversation text;
BEGIN
  SELECT t.tenant, t.conversation INTO p_tenant, of_conversation FROM whoa.tasks t WHERE t.id = task_id;
  IF of_conversation IS NOT NULL THEN
    PERFORM 1 FROM whoa.conversations c WHERE c.tenant = p_tenant AND c.conversation = of_conversation FOR UPDATE;
  END IF;
END $$;

-- Locks a new or existing conversation. One that was idle for longer than its retention starts again.
CREATE FUNCTION fn.open_conversation(p_tenant text, of_conversation text, retention_ms float8)
RETURNS whoa.conversations LANGUAGE plpgsql AS $$
DECLARE
  conversation_row whoa.conversations; now float8 := fn.now_ms();
BEGIN
  LOOP
    INSERT INTO whoa.conversations (tenant, conversation, changed_at) VALUES (p_tenant, of_conversation, now)
    ON CONFLICT DO NOTHING;
    SELECT * INTO conversation_row FROM whoa.conversations c
    WHERE c.tenant = p_tenant AND c.conversation = of_conversation FOR UPDATE;
    -- Removed in between: try again.
    EXIT WHEN FOUND;
  END LOOP;
  IF conversation_row.current IS NULL AND conversation_row.debouncing IS NULL AND conversation_row.changed_at <= now - retention_ms THEN
    DELETE FROM whoa.history h WHERE h.tenant = p_tenant AND h.conversation = of_conversation;
    UPDATE whoa.conversations c SET history_bytes = 0, changed_at = now
    WHERE c.tenant = p_tenant AND c.conversation = of_conversation RETURNING * INTO conversation_row;
  END IF;
  RETURN conversation_row;
END $$;

-- Admits a task to its locked conversation: it starts, waits, is passed to the current task as a message, or is
-- rejected. Writes everything except the task itself.
CREATE FUNCTION fn.admit(
  task_id text, p_tenant text, of_agent text, of_conversation text, policy text, owner text, of_context text,
  starts_at float8, keeps boolean, now float8, OUT admitted text, OUT superseded text[], OUT steered text, OUT joined text
) LANGUAGE plpgsql AS $$
DECLARE
  conversation_row whoa.conversations; present whoa.tasks; last whoa.tasks;
  reason json := fn.own_reason('superseded', 'a newer message arrived', now); other text;
BEGIN
  SELECT * INTO conversation_row FROM whoa.conversations c WHERE c.tenant = p_tenant AND c.conversation = of_conversation;
  IF conversation_row.current IS NOT NULL THEN
    SELECT * INTO present FROM whoa.tasks t WHERE t.id = conversation_row.current FOR UPDATE;
  END IF;
  admitted := fn.admission(policy, coalesce(present.status, 'none'));
  keeps := keeps AND coalesce(present.questions_open, 0) > 0;
  IF admitted = 'start' THEN
    conversation_row.current := task_id;
  ELSIF admitted = 'replace' THEN
    FOREACH other IN ARRAY conversation_row.waiting LOOP PERFORM fn.end_unstarted(other, reason, now); END LOOP;
    superseded := conversation_row.waiting || conversation_row.current;
    IF fn.has_started(present) THEN
      PERFORM fn.order_stop(present, reason, 'drain' /*level*/, 10000 /*abortMs*/, 12000 /*killMs*/, false, now);
      conversation_row.waiting := ARRAY[task_id];
      admitted := 'wait';
    ELSE
      PERFORM fn.end_unstarted(conversation_row.current, reason, now);
      conversation_row.current := task_id;
      conversation_row.waiting := '{}';
      admitted := 'start';
    END IF;
  ELSIF admitted = 'reject' OR cardinality(conversation_row.waiting) >= 100 /*maxQueued*/ THEN
    admitted := 'reject';
    RETURN;
  ELSIF admitted = 'steer' AND NOT keeps AND present.context IS NOT DISTINCT FROM of_context
    AND present.commands_waiting < 100 /*maxCommands*/
  THEN
    -- The user wrote instead of answering. A task that starts later is not a message of now.
    IF starts_at <= now THEN PERFORM fn.close_open(present, 'withdrawn', now); END IF;
    conversation_row.waiting := fn.behind_steers(conversation_row.waiting, conversation_row.current, task_id);
    PERFORM fn.add_command(conversation_row.current, json_build_object('type', 'steer', 'message',
      (SELECT i.input FROM whoa.inputs i WHERE i.owner = admit.owner ORDER BY i.position DESC LIMIT 1), 'task', task_id), task_id);
    steered := conversation_row.current;
    admitted := 'wait';
  ELSE
    IF NOT keeps AND starts_at <= now AND fn.close_open(present, 'withdrawn', now) THEN
      PERFORM fn.send_order(present.id, 'command');
    END IF;
    IF admitted = 'merge' AND cardinality(conversation_row.waiting) > 0 THEN
      SELECT * INTO last FROM whoa.tasks t WHERE t.id = conversation_row.waiting[cardinality(conversation_row.waiting)];
      joined := fn.merge(last, task_id, of_agent, owner, of_context, now);
      IF joined IS NOT NULL THEN conversation_row.waiting := array_remove(conversation_row.waiting, last.id); END IF;
    END IF;
    conversation_row.waiting := conversation_row.waiting || task_id;
    admitted := 'wait';
  END IF;
  UPDATE whoa.conversations c SET current = conversation_row.current, waiting = conversation_row.waiting, changed_at = now
  WHERE c.tenant = p_tenant AND c.conversation = of_conversation;
END $$;

-- Passes the messages of the last waiting task and of a newer one to the newer one. Returns their owner; nothing if the
-- two cannot be merged. A message that was passed to the current task may be read there.
CREATE FUNCTION fn.merge(last whoa.tasks, newer text, of_agent text, of_owner text, of_context text, now float8)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  count int := (SELECT max(i.position) FROM whoa.inputs i WHERE i.owner = last.input_owner);
  new_owner text;
BEGIN
  IF last.steered IS NOT NULL OR last.agent <> of_agent OR last.context IS DISTINCT FROM of_context
    OR count + (SELECT max(i.position) FROM whoa.inputs i WHERE i.owner = of_owner) > 1000 /*maxDebounced*/
  THEN RETURN NULL; END IF;
  new_owner := fn.end_merged(last, newer, now);
  UPDATE whoa.inputs i SET owner = new_owner, position = i.position + count WHERE i.owner = of_owner;
  RETURN new_owner;
END $$;

-- Ends a task whose messages a newer one takes over. They are passed on, not copied: returns their owner.
CREATE FUNCTION fn.end_merged(task whoa.tasks, newer text, now float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  -- Not its id: that belongs to another task once this one is removed and its key is used again.
  new_owner text := CASE WHEN task.input_owner = task.id THEN gen_random_uuid()::text ELSE task.input_owner END;
BEGIN
  UPDATE whoa.inputs i SET owner = new_owner WHERE i.owner = task.id;
  UPDATE whoa.tasks t SET input_owner = '' WHERE t.id = task.id;
  PERFORM fn.end_unstarted(task.id, fn.own_reason('merged', 'taken over by ' || newer, now), now);
  RETURN new_owner;
END $$;

-- Returns whether a task may have had effects. Then it must be settled, not just ended.
CREATE FUNCTION fn.has_started(task whoa.tasks) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT task.status <> 'init' OR task.position > 0
$$;

-- Returns the queue with a task added behind those whose messages were passed to the current task.
CREATE FUNCTION fn.behind_steers(waiting text[], current text, task_id text) RETURNS text[] LANGUAGE sql STABLE AS $$
  SELECT coalesce(array_agg(w.id ORDER BY w.ordinal) FILTER (WHERE w.given), '{}') || task_id
    || coalesce(array_agg(w.id ORDER BY w.ordinal) FILTER (WHERE NOT w.given), '{}')
  FROM (
    SELECT id, ordinal, EXISTS (SELECT FROM whoa.commands c WHERE c.task = current AND c.steered = id) AS given
    FROM unnest(waiting) WITH ORDINALITY AS queue (id, ordinal)
  ) w
$$;

-- Removes an ended task from its locked conversation. Returns the next task, if that changed.
CREATE FUNCTION fn.leave_conversation(task whoa.tasks, now float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  conversation_row whoa.conversations; successor text;
BEGIN
  IF task.conversation IS NULL THEN RETURN NULL; END IF;
  SELECT * INTO conversation_row FROM whoa.conversations c WHERE c.tenant = task.tenant AND c.conversation = task.conversation;
  conversation_row.waiting := array_remove(conversation_row.waiting, task.id);
  IF conversation_row.current = task.id THEN
    successor := conversation_row.waiting[1];
    conversation_row.current := successor;
    conversation_row.waiting := conversation_row.waiting[2:];
  END IF;
  UPDATE whoa.conversations c SET current = conversation_row.current, waiting = conversation_row.waiting, changed_at = now,
    debouncing = nullif(c.debouncing, task.id)
  WHERE c.tenant = task.tenant AND c.conversation = task.conversation;
  PERFORM fn.tell_conversation(task.tenant, task.conversation, now);
  IF successor IS NOT NULL THEN PERFORM fn.promote(successor, now); END IF;
  RETURN successor;
END $$;

-- Returns the current level of a stop, which rises as its deadlines pass.
CREATE FUNCTION fn.level_at(level text, abort_at float8, kill_at float8, now float8)
RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN level = 'kill' OR now >= kill_at THEN 'kill' WHEN level = 'abort' OR now >= abort_at THEN 'abort' ELSE level END
$$;

-- Orders a locked task to stop. Levels only rise, deadlines only move closer, the first reason
-- is kept. A started task that no worker holds is settled by a free worker.
CREATE FUNCTION fn.order_stop(
  task whoa.tasks, reason json, level text, abort_ms float8, kill_ms float8, undo boolean, now float8,
  OUT answer text, OUT stopped whoa.tasks
) LANGUAGE plpgsql AS $$
DECLARE
  reached text := fn.level_at(task.stop_level, task.stop_abort_at, task.stop_kill_at, now);
BEGIN
  IF task.stop_level IS NOT NULL AND fn.to_rank(level) <= fn.to_rank(reached)
    AND now + abort_ms >= task.stop_abort_at AND now + kill_ms >= task.stop_kill_at AND (task.stop_undo OR NOT undo)
  THEN
    answer := 'unchanged';
    stopped := task;
    RETURN;
  END IF;
  answer := CASE WHEN task.stop_level IS NULL THEN 'accepted' ELSE 'escalated' END;
  PERFORM fn.close_open(task, 'cancelled', now);
  UPDATE whoa.tasks t SET status = fn.next_status(CASE WHEN t.status = 'init' THEN 'running' ELSE t.status END, 'cancel'),
    stop_reason = coalesce(t.stop_reason, reason),
    stop_level = CASE WHEN fn.to_rank(level) >= fn.to_rank(reached) THEN level ELSE reached END,
    stop_abort_at = least(now + abort_ms, t.stop_abort_at), stop_kill_at = least(now + kill_ms, t.stop_kill_at),
    stop_undo = undo OR coalesce(t.stop_undo, false),
    -- Rule: order
    order_number = t.order_number + 1, has_pending_orders = coalesce(t.stage = 'held', false)
  WHERE t.id = task.id RETURNING * INTO stopped;
  IF task.stage = 'held' THEN
    PERFORM fn.notify('cancel', stopped);
    RETURN;
  END IF;
  UPDATE whoa.tasks t SET worker = NULL,
    -- Rule: ready
    stage = 'ready', stage_at = now, policy = NULL, ready_queue = fn.to_ready_queue(t.agent, t.status, t.stop_undo, t.attempts)
  WHERE t.id = task.id RETURNING * INTO stopped;
  PERFORM fn.notify('cancel', stopped);
  PERFORM fn.wake_worker(stopped.ready_queue, now);
END $$;
