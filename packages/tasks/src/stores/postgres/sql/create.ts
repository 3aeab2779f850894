/** `create`, and the sweeping that comes with it. See `moves/create.ts`. */
export const CREATE = `
CREATE FUNCTION whoa.create_task(
  task_id text, of_tenant text, of_agent text, of_conversation text, of_key text, home text, input json,
  hold_ms float8, policy text, given_nonce text, kept_ms float8, conversation_kept_ms float8
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
  inputs json[] := ARRAY[input];
  admitted boolean := true;
  waits boolean := false;
  superseded text[] := '{}';
  steered text;
  is_open boolean := false;
  now float8;
BEGIN
  LOOP
    SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id;
    now := whoa.now_ms();
    IF task.id IS NOT NULL AND (task.ended_at <= now - kept_ms) IS NOT TRUE THEN
      RETURN whoa.existing(task, given_nonce);
    END IF;
    -- Don't open the conversation before: a task that exists already must not bring a forgotten one back.
    EXIT WHEN of_conversation IS NULL OR is_open;
    PERFORM whoa.open_line(of_tenant, of_conversation, conversation_kept_ms);
    is_open := true;
  END LOOP;
  IF task.id IS NOT NULL THEN PERFORM whoa.drop_tasks(ARRAY[task_id]); END IF;
  IF is_open THEN
    -- Don't let a message that is refused take those along that were accepted and are still held back.
    IF policy = 'reject' AND hold_ms = 0 AND EXISTS (
      SELECT FROM whoa.conversations c
      WHERE c.tenant = of_tenant AND c.conversation = of_conversation AND c.current IS NOT NULL
    ) THEN RETURN json_build_object('answer', 'rejected'); END IF;
    inputs := whoa.take_gathering(task_id, of_tenant, of_conversation, now) || inputs;
    IF hold_ms > 0 THEN
      UPDATE whoa.conversations c SET gathering = task_id, changed_at = now
      WHERE c.tenant = of_tenant AND c.conversation = of_conversation;
    ELSE
      SELECT * INTO admitted, waits, superseded, steered
      FROM whoa.admit(task_id, of_tenant, of_conversation, policy, input, now);
      IF NOT admitted THEN RETURN json_build_object('answer', 'rejected'); END IF;
    END IF;
  END IF;
  INSERT INTO whoa.tasks (
    id, tenant, agent, conversation, key, nonce, superseded, steered, inputs, worker, waiting, held_until, held_policy,
    due_at, created_at
  ) VALUES (
    task_id, of_tenant, of_agent, of_conversation, of_key, CASE WHEN of_key IS NOT NULL THEN given_nonce END,
    nullif(superseded, '{}'), steered, inputs, home, waits,
    CASE WHEN is_open AND hold_ms > 0 THEN now + hold_ms END, CASE WHEN is_open AND hold_ms > 0 THEN policy END,
    CASE WHEN NOT waits THEN whoa.due_for(home, now + CASE WHEN is_open THEN hold_ms ELSE 0 END) END, now
  ) ON CONFLICT (id) DO NOTHING RETURNING * INTO task;
  IF NOT FOUND THEN
    -- Somebody else created it under the same key just now.
    SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id;
    RETURN whoa.existing(task, given_nonce);
  END IF;
  PERFORM whoa.tell('status', task_id, of_tenant, home, of_conversation);
  -- Don't sweep earlier: what the sweep locks, nobody may hold while waiting for anything else.
  PERFORM whoa.forget(now - kept_ms, now - conversation_kept_ms);
  RETURN json_build_object('answer', 'created', 'task', whoa.task_of(task),
    'superseded', superseded, 'steered', steered);
END $$;

-- What is answered when the task is there: what was answered at first, if it is the same request. Without a key the id is
-- made of the nonce, so it is.
CREATE FUNCTION whoa.existing(task whoa.tasks, given_nonce text) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF task.key IS NOT NULL AND task.nonce IS DISTINCT FROM given_nonce THEN
    RETURN json_build_object('answer', 'duplicate', 'task', whoa.task_of(task));
  END IF;
  RETURN json_build_object('answer', 'created', 'task', whoa.task_of(task),
    'superseded', coalesce(task.superseded, '{}'), 'steered', task.steered);
END $$;

-- Messages that are still held back are taken over by the newest; the older ones end as merged.
CREATE FUNCTION whoa.take_gathering(task_id text, of_tenant text, of_conversation text, now float8)
RETURNS json[] LANGUAGE plpgsql AS $$
DECLARE
  held whoa.tasks;
BEGIN
  SELECT t.* INTO held FROM whoa.conversations c JOIN whoa.tasks t ON t.id = c.gathering
  WHERE c.tenant = of_tenant AND c.conversation = of_conversation FOR UPDATE OF t;
  IF NOT FOUND THEN RETURN '{}'; END IF;
  PERFORM whoa.end_unstarted(held.id, whoa.own_reason('merged', 'taken over by ' || task_id, now), now);
  UPDATE whoa.conversations c SET gathering = NULL, changed_at = now
  WHERE c.tenant = of_tenant AND c.conversation = of_conversation;
  RETURN held.inputs;
END $$;

-- Forgets a few tasks that ended before, and conversations untouched since. Never waits, and is little work each time.
CREATE FUNCTION whoa.forget(ended_before float8, changed_before float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  gone text[];
BEGIN
  SELECT array_agg(old.id) INTO gone FROM (
    SELECT t.id FROM whoa.tasks t WHERE t.ended_at <= ended_before ORDER BY t.ended_at LIMIT 10 FOR UPDATE SKIP LOCKED
  ) old;
  IF gone IS NOT NULL THEN PERFORM whoa.drop_tasks(gone); END IF;
  WITH idle AS (
    DELETE FROM whoa.conversations c USING (
      SELECT o.tenant, o.conversation FROM whoa.conversations o
      WHERE o.changed_at <= changed_before AND o.current IS NULL AND o.gathering IS NULL
      ORDER BY o.changed_at LIMIT 10 FOR UPDATE SKIP LOCKED
    ) old WHERE c.tenant = old.tenant AND c.conversation = old.conversation RETURNING c.tenant, c.conversation
  ) DELETE FROM whoa.history h USING idle i WHERE h.tenant = i.tenant AND h.conversation = i.conversation;
END $$;

CREATE FUNCTION whoa.drop_tasks(ids text[]) RETURNS void LANGUAGE sql AS $$
  DELETE FROM whoa.journal WHERE task = ANY (ids);
  DELETE FROM whoa.sent WHERE task = ANY (ids);
  DELETE FROM whoa.tasks WHERE id = ANY (ids);
$$;
`;
