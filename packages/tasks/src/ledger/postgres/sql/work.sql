-- What the holder of a task writes: append, release, finish. See `operations/work.ts`.

-- Reads: tasks, journal. Locks: conversation if commands are done, task. Writes: journal, tasks, commands, questions. Returns: orders.
CREATE FUNCTION fn.append(
  task_id text, own_epoch int, own_session text, own_claim text, after int, events json[], said float8[], replaces int[], done int[],
  declined int[], progress boolean, max_bytes float8, shown text, asked_ids text[], asked json[],
  expires_ms float8[], closed_ids text[], whys text[]
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  bytes float8; task whoa.tasks; steered text[] := '{}'; message text; added int := cardinality(events);
  now float8; refused text;
BEGIN
  -- A command that was carried out may end a task that waits in the conversation.
  IF cardinality(done) > 0 THEN PERFORM fn.lock_conversation(task_id); END IF;
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id FOR UPDATE;
  now := fn.now_ms();
  IF NOT fn.is_own(task, own_epoch, own_session, own_claim) THEN RETURN json_build_object('result', 'lost'); END IF;
  -- A repeated batch, whose response was lost.
  IF added > 0 AND task.position = after + added THEN
    added := 0;
    replaces := '{}';
    shown := NULL;
    asked_ids := '{}';
    closed_ids := '{}';
  ELSIF task.position <> after THEN RETURN json_build_object('result', 'gap', 'position', task.position);
  END IF;
  bytes := task.journal_bytes;
  IF added > 0 THEN
    bytes := bytes + (SELECT sum(octet_length(event::text)) FROM unnest(events) AS batch (event));
  END IF;
  IF cardinality(replaces) > 0 THEN
    bytes := bytes - coalesce((SELECT sum(octet_length(j.event::text)) FROM whoa.journal j
      WHERE j.task = task_id AND j.position = ANY (replaces)), 0);
  END IF;
  IF bytes > greatest(max_bytes, task.journal_bytes) THEN
    RETURN json_build_object('result', 'full', 'bytes', task.journal_bytes);
  END IF;
  refused := fn.apply_questions(task, asked_ids, asked, expires_ms, closed_ids, whys, done || declined, now);
  IF refused IS NOT NULL THEN RETURN json_build_object('result', 'refused', 'why', refused); END IF;
  IF cardinality(replaces) > 0 THEN
    DELETE FROM whoa.journal j WHERE j.task = task_id AND j.position = ANY (replaces);
  END IF;
  IF added > 0 THEN
    INSERT INTO whoa.journal (task, position, epoch, at, event, claim, said)
    SELECT task_id, after + b.ordinal, own_epoch, now, b.event, own_claim, b.said
    FROM unnest(events, append.said) WITH ORDINALITY AS b (event, said, ordinal);
    PERFORM fn.notify(CASE WHEN cardinality(asked_ids) > 0 THEN 'status' ELSE 'journal' END, task);
  END IF;
  IF cardinality(done) + cardinality(declined) > 0 THEN
    WITH gone AS (
      DELETE FROM whoa.commands c WHERE c.task = task_id AND c.number = ANY (done || declined) RETURNING c.steered, c.number
    ) SELECT coalesce(array_agg(g.steered ORDER BY g.number) FILTER (WHERE g.steered IS NOT NULL AND g.number = ANY (done)), '{}'),
      task.commands_waiting - count(*) INTO steered, task.commands_waiting FROM gone g;
  END IF;
  IF added > 0 OR cardinality(done) + cardinality(declined) > 0 OR cardinality(replaces) > 0 OR (progress AND task.attempts <> 0)
    OR shown <> coalesce(task.activity, '') THEN
    UPDATE whoa.tasks t SET position = t.position + added, journal_bytes = bytes, commands_waiting = task.commands_waiting,
      attempts = CASE WHEN progress THEN 0 ELSE t.attempts END,
      charges = CASE WHEN progress THEN 0 ELSE t.charges END, activity = coalesce(shown, t.activity)
    WHERE t.id = task_id RETURNING * INTO task;
  END IF;
  FOREACH message IN ARRAY steered LOOP PERFORM fn.end_steered(message, task, now); END LOOP;
  RETURN fn.task_orders(task, now);
END $$;

-- Ends the tasks of messages that the current task has read. Only in the locked conversation.
CREATE FUNCTION fn.end_steered(message text, reader whoa.tasks, now float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  waits whoa.tasks;
BEGIN
  SELECT * INTO waits FROM whoa.tasks t WHERE t.id = message AND t.status IS NOT DISTINCT FROM 'init'
    AND t.tenant IS NOT DISTINCT FROM reader.tenant AND t.conversation IS NOT DISTINCT FROM reader.conversation FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM fn.end_task(waits, 'cancelled', '{}', fn.own_reason('steered', 'answered by ' || reader.id, now), NULL, now);
  PERFORM fn.leave_conversation(waits, now);
END $$;

-- Only a task that will run again is delayed: a stop never waits.
-- Reads: tasks. Locks: task. Writes: tasks, waiters. Returns: whether it was handed back now.
CREATE FUNCTION fn.release(
  task_id text, own_epoch int, own_session text, own_claim text, delay_ms float8
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks; now float8;
BEGIN
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id FOR UPDATE;
  now := fn.now_ms();
  IF task.released = own_claim THEN RETURN json_build_object('result', 'unchanged'); END IF;
  IF task.lost_claim = own_claim AND task.ended_at IS NULL THEN
    PERFORM fn.release_late(task, now);
    RETURN json_build_object('result', 'unchanged');
  END IF;
  IF NOT fn.is_own(task, own_epoch, own_session, own_claim) THEN RETURN json_build_object('result', 'lost'); END IF;
  IF delay_ms > 0 AND task.status = 'running' THEN
    UPDATE whoa.tasks t SET
      -- Rule: release and delay; released = own_claim, stageAt = now + delay_ms
      status = fn.next_status(t.status, 'release'), epoch = t.epoch + 1, attempts = greatest(0, t.attempts - 1),
      released = own_claim, session = NULL, claim = NULL, worker = NULL, has_pending_orders = false, stage = 'delayed',
      stage_at = now + delay_ms, ready_queue = NULL
    WHERE t.id = task_id RETURNING * INTO task;
  ELSE
    UPDATE whoa.tasks t SET
      -- Rule: release and ready; released = own_claim
      status = fn.next_status(t.status, 'release'), epoch = t.epoch + 1, attempts = greatest(0, t.attempts - 1),
      released = own_claim, session = NULL, claim = NULL, worker = NULL, has_pending_orders = false, stage = 'ready',
      stage_at = now, policy = NULL,
      ready_queue = fn.to_ready_queue(t.agent, fn.next_status(t.status, 'release'), t.stop_undo, greatest(0, t.attempts - 1))
    WHERE t.id = task_id RETURNING * INTO task;
  END IF;
  PERFORM fn.free_slot(task.tenant, task.agent, now);
  PERFORM fn.notify('preferred', task);
  IF task.stage = 'ready' THEN PERFORM fn.tell_ready(task, now); END IF;
  RETURN json_build_object('result', 'released');
END $$;

-- Parks a task if its worker has acted on everything, and only answers can make it continue.
-- Reads: tasks. Locks: task. Writes: tasks, waiters. Returns: whether it was parked, or the orders.
CREATE FUNCTION fn.park(
  task_id text, own_epoch int, own_session text, own_claim text, seen_position float8, seen_order float8
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks; now float8;
BEGIN
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id FOR UPDATE;
  now := fn.now_ms();
  IF task.released = own_claim THEN RETURN json_build_object('result', 'unchanged'); END IF;
  IF NOT fn.is_own(task, own_epoch, own_session, own_claim) THEN RETURN json_build_object('result', 'lost'); END IF;
  IF task.status <> 'running' OR task.position <> seen_position OR task.order_number <> seen_order OR task.commands_waiting > 0
    OR coalesce(task.questions_open, 0) = 0 OR task.questions_pending > 0
  THEN RETURN json_build_object('result', 'busy', 'orders', fn.task_orders(task, now)); END IF;
  UPDATE whoa.tasks t SET
    -- Rule: park; released = own_claim
    stage = 'parked', epoch = t.epoch + 1, attempts = greatest(0, t.attempts - 1), released = own_claim, session = NULL,
    claim = NULL, worker = NULL, has_pending_orders = false, ready_queue = NULL
  WHERE t.id = task_id RETURNING * INTO task;
  PERFORM fn.free_slot(task.tenant, task.agent, now);
  PERFORM fn.notify('status', task);
  RETURN json_build_object('result', 'parked');
END $$;

-- Ends a task. After an accepted cancel it is cancelled, with the reason of that cancel.
-- Reads: tasks. Locks: conversation, task, successor. Writes: tasks, history, conversations, commands. Returns: status and successor.
CREATE FUNCTION fn.finish(
  task_id text, own_epoch int, own_session text, own_claim text, p_action text, rest json, reason json, complete boolean,
  code text, replaces_history boolean, new_messages json[], retention_ms float8
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks; ending text; successor text; now float8;
BEGIN
  PERFORM fn.lock_conversation(task_id);
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id FOR UPDATE;
  now := fn.now_ms();
  IF task.ended_at > now - retention_ms AND task.claim = own_claim AND task.epoch = own_epoch THEN
    RETURN json_build_object('result', 'unchanged', 'status', task.status);
  END IF;
  IF NOT fn.is_own(task, own_epoch, own_session, own_claim) THEN RETURN json_build_object('result', 'lost'); END IF;
  ending := fn.next_status(task.status, p_action);
  IF ending = 'cancelled' THEN
    reason := coalesce(task.stop_reason, reason, fn.reason('{"kind":"user"}', now));
    complete := coalesce(complete, p_action <> 'cancelled');
  END IF;
  IF task.conversation IS NOT NULL THEN PERFORM fn.append_history(task, replaces_history, new_messages); END IF;
  PERFORM fn.end_task(task, ending, rest, reason, complete, now, code);
  IF task.conversation IS NOT NULL THEN successor := fn.leave_conversation(task, now); END IF;
  RETURN json_build_object('result', 'finished', 'status', ending, 'successor', successor);
END $$;

CREATE FUNCTION fn.append_history(task whoa.tasks, replaces_history boolean, new_messages json[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  bytes float8 := (SELECT coalesce(sum(octet_length(message::text)), 0) FROM unnest(new_messages) AS batch (message));
BEGIN
  IF replaces_history THEN
    DELETE FROM whoa.history h WHERE h.tenant = task.tenant AND h.conversation = task.conversation;
  END IF;
  INSERT INTO whoa.history (tenant, conversation, position, message)
  SELECT task.tenant, task.conversation, ordinal + coalesce((SELECT max(h.position) FROM whoa.history h
    WHERE h.tenant = task.tenant AND h.conversation = task.conversation), 0), message
  FROM unnest(new_messages) WITH ORDINALITY AS batch (message, ordinal);
  UPDATE whoa.conversations c SET history_bytes = CASE WHEN replaces_history THEN 0 ELSE c.history_bytes END + bytes
  WHERE c.tenant = task.tenant AND c.conversation = task.conversation;
END $$;
