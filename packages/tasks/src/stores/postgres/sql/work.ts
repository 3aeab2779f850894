/** What a worker asks: claim, renew, append, release, finish. See `moves/claim.ts` and `moves/work.ts`. */
export const CLAIM = `
CREATE FUNCTION whoa.claim(task_id text, claimer text, lease_ms float8, attempts_max int, kept_ms float8)
RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
  now float8;
BEGIN
  PERFORM whoa.lock_line(task_id);
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id FOR UPDATE;
  -- The time after the lock was had, not before: whoever held it may have taken the task.
  now := whoa.now_ms();
  IF task.id IS NULL OR task.ended_at <= now - kept_ms THEN RETURN json_build_object('answer', 'unknown'); END IF;
  IF now < task.held_until THEN RETURN json_build_object('answer', 'waiting', 'until', task.held_until); END IF;
  IF task.held_until IS NOT NULL THEN
    PERFORM whoa.admit_held(task_id, now);
    SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id;
  END IF;
  IF task.ended_at IS NOT NULL THEN RETURN json_build_object('answer', 'too-late', 'status', task.status); END IF;
  IF task.waiting THEN RETURN json_build_object('answer', 'waiting'); END IF;
  IF now < task.lease_until THEN RETURN json_build_object('answer', 'held', 'until', task.lease_until); END IF;
  IF task.status = 'running' AND task.attempts >= attempts_max THEN
    PERFORM whoa.give_up(task_id, attempts_max, now);
    RETURN json_build_object('answer', 'too-late', 'status', 'failed');
  END IF;
  UPDATE whoa.tasks t SET status = CASE WHEN t.status = 'cancelling' THEN 'cancelling' ELSE 'running' END,
    epoch = t.epoch + 1, attempts = t.attempts + 1, worker = claimer, lease_until = now + lease_ms,
    due_at = now + lease_ms, started_at = coalesce(t.started_at, now)
  WHERE t.id = task_id RETURNING * INTO task;
  PERFORM whoa.tell('status', task.id, task.tenant, task.worker, task.conversation);
  RETURN json_build_object('answer', 'claimed', 'task', whoa.task_of(task), 'orders', whoa.orders_of(task, now),
    'history', whoa.history_of(task.tenant, task.conversation));
END $$;

-- The time to wait for more messages is over: the task does what its policy says.
CREATE FUNCTION whoa.admit_held(task_id text, now float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
  admission record;
BEGIN
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id;
  UPDATE whoa.conversations c SET gathering = NULL WHERE c.tenant = task.tenant AND c.conversation = task.conversation;
  SELECT * INTO admission FROM whoa.admit(
    task_id, task.tenant, task.conversation, task.held_policy, task.inputs[cardinality(task.inputs)], now);
  IF NOT admission.admitted THEN
    PERFORM whoa.end_unstarted(
      task_id, whoa.own_reason('rejected', 'another task of the conversation was under way', now), now);
    RETURN;
  END IF;
  UPDATE whoa.tasks t SET held_until = NULL, held_policy = NULL, waiting = admission.waits,
    superseded = nullif(admission.superseded, '{}'), steered = admission.steered,
    due_at = CASE WHEN NOT admission.waits THEN whoa.due_for(t.worker, now) END
  WHERE t.id = task_id;
  PERFORM whoa.tell('status', task.id, task.tenant, task.worker, task.conversation);
END $$;

-- Its workers keep dying: the task is to blame, or nobody can tell. The epoch moves on, so the last one is fenced too.
CREATE FUNCTION whoa.give_up(task_id text, attempts_max int, now float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
BEGIN
  UPDATE whoa.tasks t SET status = 'failed', epoch = t.epoch + 1, ended_at = now, lease_until = NULL, due_at = NULL,
    commands_waiting = 0, outcome = json_build_object('error', json_build_object(
      'message', format('its workers were lost %s times', attempts_max), 'code', 'WORKERS_LOST'))
  WHERE t.id = task_id RETURNING * INTO task;
  DELETE FROM whoa.commands c WHERE c.task = task_id;
  PERFORM whoa.tell('status', task.id, task.tenant, task.worker, task.conversation);
  PERFORM whoa.leave_line(task.id, task.tenant, task.conversation, now);
END $$;
`;

export const WORK = `
CREATE FUNCTION whoa.renew(task_id text, own_epoch int, lease_ms float8) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
  now float8 := whoa.now_ms();
BEGIN
  -- A lease never gets shorter: a late renewal must not take back time that was promised.
  UPDATE whoa.tasks t SET lease_until = greatest(now + lease_ms, t.lease_until),
    due_at = greatest(now + lease_ms, t.lease_until)
  WHERE t.id = task_id AND t.epoch = own_epoch AND t.status IN ('running', 'cancelling') RETURNING * INTO task;
  RETURN CASE WHEN task.id IS NOT NULL THEN whoa.orders_of(task, now) ELSE '{"answer":"lost"}' END;
END $$;

CREATE FUNCTION whoa.append(
  task_id text, own_epoch int, after int, events json[], replaces int[], done int[], bytes_max float8
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  bytes float8;
  task whoa.tasks;
  steered text[] := '{}';
  message text;
  added int := cardinality(events);
  now float8;
BEGIN
  -- A command that was carried out may end a task that waits in the conversation.
  IF cardinality(done) > 0 THEN PERFORM whoa.lock_line(task_id); END IF;
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id FOR UPDATE;
  now := whoa.now_ms();
  IF task.id IS NULL OR task.epoch <> own_epoch OR task.status NOT IN ('running', 'cancelling') THEN
    RETURN json_build_object('answer', 'lost');
  END IF;
  -- The same batch again: its answer was lost.
  IF added > 0 AND task.position = after + added THEN
    added := 0;
    replaces := '{}';
  ELSIF task.position <> after THEN RETURN json_build_object('answer', 'gap', 'position', task.position);
  END IF;
  bytes := task.journal_bytes;
  IF added > 0 THEN
    bytes := bytes + (SELECT sum(octet_length(event::text)) FROM unnest(events) AS batch (event));
  END IF;
  IF cardinality(replaces) > 0 THEN
    bytes := bytes - coalesce((SELECT sum(octet_length(j.event::text)) FROM whoa.journal j
      WHERE j.task = task_id AND j.position = ANY (replaces)), 0);
  END IF;
  IF bytes > greatest(bytes_max, task.journal_bytes) THEN
    RETURN json_build_object('answer', 'full', 'bytes', task.journal_bytes);
  END IF;
  IF cardinality(replaces) > 0 THEN
    DELETE FROM whoa.journal j WHERE j.task = task_id AND j.position = ANY (replaces);
  END IF;
  IF added > 0 THEN
    INSERT INTO whoa.journal (task, position, epoch, at, event)
    SELECT task_id, after + place, own_epoch, now, event FROM unnest(events) WITH ORDINALITY AS batch (event, place);
    PERFORM whoa.tell('journal', task.id, task.tenant, task.worker, task.conversation);
  END IF;
  IF cardinality(done) > 0 THEN
    WITH gone AS (
      DELETE FROM whoa.commands c WHERE c.task = task_id AND c.number = ANY (done) RETURNING c.steered, c.number
    ) SELECT coalesce(array_agg(g.steered ORDER BY g.number) FILTER (WHERE g.steered IS NOT NULL), '{}'),
      task.commands_waiting - count(*) INTO steered, task.commands_waiting FROM gone g;
  END IF;
  IF added > 0 OR cardinality(done) > 0 OR cardinality(replaces) > 0 THEN
    UPDATE whoa.tasks t SET position = t.position + added, journal_bytes = bytes, commands_waiting = task.commands_waiting
    WHERE t.id = task_id RETURNING * INTO task;
  END IF;
  FOREACH message IN ARRAY steered LOOP PERFORM whoa.end_steered(message, task_id, now); END LOOP;
  RETURN whoa.orders_of(task, now);
END $$;

-- A message that the current task has read needs no task of its own.
CREATE FUNCTION whoa.end_steered(message text, reader text, now float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  waits whoa.tasks;
BEGIN
  -- Only in the conversation that is locked.
  SELECT t.* INTO waits FROM whoa.tasks t JOIN whoa.tasks r USING (tenant, conversation)
  WHERE t.id = message AND r.id = reader AND t.status = 'init' FOR UPDATE OF t;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM whoa.end_unstarted(message, whoa.own_reason('steered', 'answered by ' || reader, now), now);
  PERFORM whoa.leave_line(message, waits.tenant, waits.conversation, now);
END $$;

CREATE FUNCTION whoa.release(task_id text, own_epoch int) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
BEGIN
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id FOR UPDATE;
  IF task.id IS NULL OR task.epoch <> own_epoch OR task.ended_at IS NOT NULL THEN
    RETURN json_build_object('answer', 'lost');
  END IF;
  IF task.status = 'init' THEN RETURN json_build_object('answer', 'already'); END IF;
  IF task.status = 'cancelling' THEN RETURN json_build_object('answer', 'sealed'); END IF;
  UPDATE whoa.tasks t SET status = 'init', attempts = t.attempts - 1, worker = NULL, lease_until = NULL,
    due_at = whoa.now_ms() WHERE t.id = task_id;
  PERFORM whoa.tell('wake', task.id, task.tenant, NULL, task.conversation);
  RETURN json_build_object('answer', 'released');
END $$;

-- The end of a task. Once a cancel was accepted it is cancelled, for the reason of that cancel.
CREATE FUNCTION whoa.finish(
  task_id text, own_epoch int, asked text, rest json, reason json, complete boolean, anew boolean, said json[],
  kept_ms float8
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
  successor text;
  now float8;
BEGIN
  PERFORM whoa.lock_line(task_id);
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id FOR UPDATE;
  now := whoa.now_ms();
  IF task.id IS NULL OR task.epoch <> own_epoch OR task.status = 'init' OR task.ended_at <= now - kept_ms THEN
    RETURN json_build_object('answer', 'lost');
  END IF;
  IF task.ended_at IS NOT NULL THEN RETURN json_build_object('answer', 'already', 'status', task.status); END IF;
  IF task.stop_level IS NOT NULL OR asked = 'cancelled' THEN
    reason := coalesce(task.stop_reason, reason, json_build_object('kind', 'user', 'at', now));
    complete := coalesce(complete, asked <> 'cancelled');
    asked := 'cancelled';
  END IF;
  UPDATE whoa.tasks t SET status = asked, ended_at = now, lease_until = NULL, due_at = NULL, commands_waiting = 0,
    outcome = rest, outcome_reason = reason, outcome_complete = complete
  WHERE t.id = task_id;
  IF task.commands_waiting > 0 THEN DELETE FROM whoa.commands c WHERE c.task = task_id; END IF;
  IF task.conversation IS NOT NULL THEN
    IF anew THEN
      DELETE FROM whoa.history h WHERE h.tenant = task.tenant AND h.conversation = task.conversation;
    END IF;
    INSERT INTO whoa.history (tenant, conversation, position, message)
    SELECT task.tenant, task.conversation, place + coalesce((SELECT max(h.position) FROM whoa.history h
      WHERE h.tenant = task.tenant AND h.conversation = task.conversation), 0), message
    FROM unnest(said) WITH ORDINALITY AS batch (message, place);
  END IF;
  successor := whoa.leave_line(task.id, task.tenant, task.conversation, now);
  PERFORM whoa.tell('status', task.id, task.tenant, task.worker, task.conversation);
  RETURN json_build_object('answer', 'finished', 'status', asked, 'successor', successor);
END $$;
`;
