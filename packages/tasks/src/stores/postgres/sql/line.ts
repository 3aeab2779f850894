/** Conversations: who is next, who waits, who is ended for another. The order of the moves in `moves/line.ts`. */
export const LINE = `
-- Locks the conversation of a task. Whoever touches more than one task locks the conversation first, then its tasks:
-- that is why no two moves can wait for each other.
CREATE FUNCTION whoa.lock_line(task_id text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM whoa.tasks t JOIN whoa.conversations c USING (tenant, conversation)
  WHERE t.id = task_id FOR UPDATE OF c;
END $$;

-- Locks a conversation, new or old. One that was idle for longer than it is kept starts anew.
CREATE FUNCTION whoa.open_line(of_tenant text, of_conversation text, kept_ms float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  line whoa.conversations;
BEGIN
  LOOP
    INSERT INTO whoa.conversations (tenant, conversation, changed_at)
    VALUES (of_tenant, of_conversation, whoa.now_ms()) ON CONFLICT DO NOTHING;
    SELECT * INTO line FROM whoa.conversations c
    WHERE c.tenant = of_tenant AND c.conversation = of_conversation FOR UPDATE;
    -- Swept in between: once more.
    EXIT WHEN FOUND;
  END LOOP;
  IF line.current IS NULL AND line.gathering IS NULL AND line.changed_at <= whoa.now_ms() - kept_ms THEN
    DELETE FROM whoa.history h WHERE h.tenant = of_tenant AND h.conversation = of_conversation;
  END IF;
END $$;

-- A worker that created a task has 5 s to take it before others look.
CREATE FUNCTION whoa.due_for(worker text, now float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN worker IS NULL THEN now ELSE now + 5000 END
$$;

-- Lets a task into its conversation, which is locked: it is next, waits, is given to the current one as a message, or is
-- refused. Writes everything but the task itself.
CREATE FUNCTION whoa.admit(
  task_id text, of_tenant text, of_conversation text, policy text, message json, now float8,
  OUT admitted boolean, OUT waits boolean, OUT superseded text[], OUT steered text
) LANGUAGE plpgsql AS $$
DECLARE
  line whoa.conversations;
  present whoa.tasks;
  reason json := whoa.own_reason('superseded', 'a newer message arrived', now);
  other text;
BEGIN
  SELECT * INTO line FROM whoa.conversations c WHERE c.tenant = of_tenant AND c.conversation = of_conversation;
  admitted := true;
  waits := line.current IS NOT NULL;
  superseded := '{}';
  IF NOT waits THEN
    line.current := task_id;
  ELSE
    SELECT * INTO present FROM whoa.tasks t WHERE t.id = line.current FOR UPDATE;
    IF policy = 'replace' THEN
      FOREACH other IN ARRAY line.waiting LOOP PERFORM whoa.end_unstarted(other, reason, now); END LOOP;
      superseded := line.waiting || line.current;
      IF present.status = 'init' THEN
        PERFORM whoa.end_unstarted(line.current, reason, now);
        line.current := task_id;
        line.waiting := '{}';
        waits := false;
      ELSE
        PERFORM whoa.order_stop(line.current, reason, 'drain', 10000, 12000, false, now);
        line.waiting := ARRAY[task_id];
      END IF;
    ELSIF policy = 'reject' OR cardinality(line.waiting) >= 100 THEN
      admitted := false;
      RETURN;
    ELSIF policy = 'steer' AND present.stop_level IS NULL AND present.commands_waiting < 100 THEN
      line.waiting := whoa.behind_steers(line.waiting, line.current, task_id);
      PERFORM whoa.add_command(line.current, json_build_object('type', 'steer', 'message', message, 'task', task_id), task_id);
      steered := line.current;
    ELSE
      line.waiting := line.waiting || task_id;
    END IF;
  END IF;
  UPDATE whoa.conversations c SET current = line.current, waiting = line.waiting, changed_at = now
  WHERE c.tenant = of_tenant AND c.conversation = of_conversation;
END $$;

-- The line with one more behind those whose messages the current task was given too.
CREATE FUNCTION whoa.behind_steers(waiting text[], current text, task_id text) RETURNS text[] LANGUAGE sql STABLE AS $$
  SELECT coalesce(array_agg(w.id ORDER BY w.place) FILTER (WHERE w.given), '{}') || task_id
    || coalesce(array_agg(w.id ORDER BY w.place) FILTER (WHERE NOT w.given), '{}')
  FROM (
    SELECT id, place, EXISTS (SELECT FROM whoa.commands c WHERE c.task = current AND c.steered = id) AS given
    FROM unnest(waiting) WITH ORDINALITY AS line (id, place)
  ) w
$$;

-- Takes an ended task out of its conversation, which is locked. Answers whose turn it is, if that changed.
CREATE FUNCTION whoa.leave_line(task_id text, of_tenant text, of_conversation text, now float8)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  line whoa.conversations;
  woken whoa.tasks;
BEGIN
  IF of_conversation IS NULL THEN RETURN NULL; END IF;
  SELECT * INTO line FROM whoa.conversations c WHERE c.tenant = of_tenant AND c.conversation = of_conversation;
  line.waiting := array_remove(line.waiting, task_id);
  IF line.current = task_id THEN
    line.current := line.waiting[1];
    line.waiting := line.waiting[2:];
    UPDATE whoa.tasks t SET waiting = false, held_until = NULL, held_policy = NULL, due_at = whoa.due_for(t.worker, now)
    WHERE t.id = line.current RETURNING * INTO woken;
  END IF;
  UPDATE whoa.conversations c SET current = line.current, waiting = line.waiting, changed_at = now,
    gathering = nullif(c.gathering, task_id)
  WHERE c.tenant = of_tenant AND c.conversation = of_conversation;
  IF woken.id IS NOT NULL THEN PERFORM whoa.tell('wake', woken.id, woken.tenant, woken.worker, woken.conversation); END IF;
  RETURN woken.id;
END $$;

-- Ends a task that never ran. It does not leave its conversation: that is for the caller to do.
CREATE FUNCTION whoa.end_unstarted(task_id text, reason json, now float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
BEGIN
  UPDATE whoa.tasks t SET status = 'cancelled', ended_at = now, outcome = '{}', outcome_reason = reason,
    due_at = NULL, waiting = false, held_until = NULL, held_policy = NULL, commands_waiting = 0
  WHERE t.id = task_id RETURNING * INTO task;
  DELETE FROM whoa.commands c WHERE c.task = task_id;
  PERFORM whoa.tell('status', task.id, task.tenant, task.worker, task.conversation);
END $$;

-- Leaves the worker of a task, which is locked, something to do.
CREATE FUNCTION whoa.add_command(task_id text, command json, steered text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
BEGIN
  UPDATE whoa.tasks t SET commands_sent = t.commands_sent + 1, commands_waiting = t.commands_waiting + 1
  WHERE t.id = task_id RETURNING * INTO task;
  INSERT INTO whoa.commands (task, number, steered, command) VALUES (task_id, task.commands_sent, steered, command);
  PERFORM whoa.tell('command', task.id, task.tenant, task.worker, task.conversation);
  RETURN task.commands_sent;
END $$;
`;
