-- `create`, and the removal of old records. See `operations/create.ts`.

-- Reads: tasks, inputs, capped. Locks: conversation, its tasks. Writes: tasks, inputs, conversations, commands. Returns: task or refusal.
CREATE FUNCTION fn.create_task(
  task_id text, p_tenant text, of_agent text, of_conversation text, of_key text, preferred_worker text, input json, hold_ms float8,
  given_policy text, p_nonce text, of_priority int, not_before float8,
  retention_ms float8, conversation_retention_ms float8, max_ready int, deadline float8, title text, of_context text, traceparent text,
  starter text, keeps_questions boolean
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks; held whoa.tasks; conversation_row whoa.conversations; of_owner text := task_id; new_stage text;
  new_stage_at float8; new_policy text; admitted text; ended text[]; given_to text; now float8;
BEGIN
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id;
  now := fn.now_ms();
  IF task.id IS NOT NULL THEN
    IF (task.ended_at <= now - retention_ms) IS NOT TRUE THEN RETURN fn.existing(task, p_nonce); END IF;
    PERFORM fn.drop_tasks(ARRAY[task_id]);
  END IF;
  IF fn.is_full(of_agent, p_tenant, max_ready, fn.counts_ready(max_ready, 1), now) THEN
    RETURN json_build_object('result', 'full', 'what', 'tasks', 'limit', max_ready);
  END IF;
  IF of_conversation IS NOT NULL THEN
    conversation_row := fn.open_conversation(p_tenant, of_conversation, conversation_retention_ms);
    -- Created under the same key while we waited for the conversation.
    SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id;
    IF task.id IS NOT NULL THEN RETURN fn.existing(task, p_nonce); END IF;
    now := fn.now_ms();
    IF conversation_row.history_bytes > 67108864 /*historyBytes*/ THEN
      RETURN json_build_object('result', 'full', 'what', 'history', 'limit', 67108864 /*historyBytes*/);
    END IF;
    -- Check this before joining: a rejected message must not take the accepted ones that are held back with it.
    IF given_policy = 'reject' AND hold_ms = 0 AND conversation_row.current IS NOT NULL THEN
      RETURN json_build_object('result', 'rejected');
    END IF;
    IF conversation_row.debouncing IS NOT NULL THEN
      SELECT * INTO held FROM whoa.tasks t WHERE t.id = conversation_row.debouncing FOR UPDATE;
      -- Messages of different contexts are never merged: those that are held back come first.
      IF held.context IS DISTINCT FROM of_context THEN
        PERFORM fn.admit_debounced(held, now);
        SELECT * INTO conversation_row FROM whoa.conversations c WHERE c.tenant = p_tenant AND c.conversation = of_conversation;
      END IF;
    END IF;
    -- Before joining, too.
    IF hold_ms = 0 AND given_policy <> 'replace' AND cardinality(conversation_row.waiting) >= 100 /*maxQueued*/ THEN
      RETURN json_build_object('result', 'full', 'what', 'queue', 'limit', 100 /*maxQueued*/);
    END IF;
    IF conversation_row.debouncing IS NOT NULL THEN
      IF (SELECT max(i.position) FROM whoa.inputs i WHERE i.owner = held.input_owner) >= 1000 /*maxDebounced*/ THEN
        RETURN json_build_object('result', 'full', 'what', 'tasks', 'limit', 1000 /*maxDebounced*/);
      END IF;
      of_owner := fn.end_merged(held, task_id, now);
      UPDATE whoa.conversations c SET debouncing = NULL, changed_at = now
      WHERE c.tenant = p_tenant AND c.conversation = of_conversation;
    END IF;
  END IF;
  INSERT INTO whoa.inputs (owner, position, input)
  VALUES (of_owner, CASE WHEN of_owner = task_id THEN 1 ELSE 1 + coalesce(
    (SELECT max(i.position) FROM whoa.inputs i WHERE i.owner = of_owner), 0) END, input)
  ON CONFLICT DO NOTHING;
  SELECT n.stage, n.stage_at INTO new_stage, new_stage_at FROM fn.next_stage(not_before, preferred_worker, now) n;
  IF of_conversation IS NOT NULL AND hold_ms > 0 THEN
    UPDATE whoa.conversations c SET debouncing = task_id, changed_at = now
    WHERE c.tenant = p_tenant AND c.conversation = of_conversation;
    new_stage := 'delayed';
    new_stage_at := now + hold_ms;
    new_policy := given_policy;
  ELSIF of_conversation IS NOT NULL THEN
    SELECT a.admitted, a.superseded, a.steered, coalesce(a.joined, of_owner) INTO admitted, ended, given_to, of_owner
    FROM fn.admit(task_id, p_tenant, of_agent, of_conversation, given_policy, of_owner, of_context,
      coalesce(create_task.not_before, 0), create_task.keeps_questions, now) a;
    IF admitted = 'reject' THEN
      DELETE FROM whoa.inputs i WHERE i.owner = task_id;
      RETURN json_build_object('result', 'rejected');
    END IF;
    IF admitted = 'wait' THEN new_stage := 'queued'; END IF;
  END IF;
  INSERT INTO whoa.tasks (
    id, tenant, agent, conversation, title, key, nonce, superseded, steered, priority, not_before, deadline,
    stage, stage_at, ready_queue, policy, worker, input_owner, context, traceparent, started_by, keeps_questions,
    -- Columns: create
    status, commands_waiting, epoch, attempts, crashes, order_number, position, journal_bytes, commands_sent, created_at
  ) VALUES (
    task_id, p_tenant, of_agent, of_conversation, create_task.title, of_key, CASE WHEN of_key IS NOT NULL THEN p_nonce END,
    ended, given_to, of_priority, create_task.not_before, create_task.deadline,
    new_stage, CASE WHEN new_stage <> 'queued' THEN new_stage_at END,
    CASE WHEN new_stage = 'ready' THEN fn.to_ready_queue(of_agent, 'init', false, 0) END,
    new_policy, preferred_worker, of_owner, of_context, create_task.traceparent, starter, create_task.keeps_questions,
    -- Values: create
    'init', 0, 0, 0, 0, 0, 0, 0, 0, now
  ) ON CONFLICT (id) DO NOTHING RETURNING * INTO task;
  IF task.id IS NULL THEN
    -- Created under the same key just now.
    SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id;
    RETURN fn.existing(task, p_nonce);
  END IF;
  PERFORM fn.notify('status', task);
  PERFORM fn.announce(task, now);
  IF of_conversation IS NOT NULL THEN PERFORM fn.tell_conversation(p_tenant, of_conversation, now); END IF;
  RETURN json_build_object('result', 'created', 'task', fn.task_record(task));
END $$;

-- Returns the receipt for an existing task: the first receipt, if it is the same request. Without a key the id is
-- derived from the nonce, so it is.
CREATE FUNCTION fn.existing(task whoa.tasks, p_nonce text) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN json_build_object('result', CASE WHEN task.key IS NOT NULL AND task.nonce IS DISTINCT FROM p_nonce
    THEN 'duplicate' ELSE 'created' END, 'task', fn.task_record(task));
END $$;

-- Returns whether a limit of ready tasks is counted now: a small one each time, a large one for one task in many.
CREATE FUNCTION fn.counts_ready(p_limit int, tasks int) RETURNS boolean LANGUAGE sql VOLATILE AS $$
  SELECT p_limit <= 1000 OR random() * p_limit <= 20 * tasks
$$;

-- Returns whether the limit of ready tasks is reached. The result is kept for a while if the limit is large.
CREATE FUNCTION fn.is_full(of_queue text, p_tenant text, p_limit int, counts boolean, now float8)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  known float8;
BEGIN
  IF p_limit <= 1000 THEN
    RETURN fn.count_ready(fn.to_ready_queue(of_queue, 'init', false, 0), p_tenant, p_limit) >= p_limit;
  END IF;
  SELECT c.until INTO known FROM whoa.capped c WHERE c.ready_queue = of_queue AND c.tenant = p_tenant;
  IF known > now THEN RETURN true; END IF;
  IF known IS NULL AND NOT counts THEN RETURN false; END IF;
  IF fn.count_ready(fn.to_ready_queue(of_queue, 'init', false, 0), p_tenant, p_limit) >= p_limit THEN
    INSERT INTO whoa.capped (ready_queue, tenant, until) VALUES (of_queue, p_tenant, now + p_limit / 20)
    ON CONFLICT (ready_queue, tenant) DO UPDATE SET until = excluded.until;
    RETURN true;
  END IF;
  DELETE FROM whoa.capped c WHERE c.ready_queue = of_queue AND c.tenant = p_tenant;
  RETURN false;
END $$;

CREATE FUNCTION fn.count_ready(of_queue text, p_tenant text, p_limit int) RETURNS int LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT count(*) FROM (SELECT FROM whoa.tasks t WHERE t.stage = 'ready' AND t.ready_queue = of_queue
    AND t.tenant = p_tenant LIMIT p_limit) found);
END $$;

-- Applies the policy when the time to wait for more messages is over. The task and its conversation are locked.
CREATE FUNCTION fn.admit_debounced(task whoa.tasks, now float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  admission record;
BEGIN
  UPDATE whoa.conversations c SET debouncing = NULL, changed_at = now
  WHERE c.tenant = task.tenant AND c.conversation = task.conversation;
  SELECT * INTO admission FROM fn.admit(task.id, task.tenant, task.agent, task.conversation, task.policy, task.input_owner,
    task.context, coalesce(task.not_before, 0), task.keeps_questions, now);
  PERFORM fn.tell_conversation(task.tenant, task.conversation, now);
  IF admission.admitted = 'reject' THEN
    PERFORM fn.end_unstarted(task.id, fn.own_reason('rejected', 'another task of the conversation was under way', now), now);
    RETURN;
  END IF;
  UPDATE whoa.tasks t SET input_owner = coalesce(admission.joined, t.input_owner), superseded = admission.superseded,
    steered = admission.steered,
    -- Rule: queue
    stage = 'queued', stage_at = NULL, policy = NULL, ready_queue = NULL
  WHERE t.id = task.id RETURNING * INTO task;
  IF admission.admitted = 'start' THEN PERFORM fn.promote(task.id, now); END IF;
  PERFORM fn.notify('status', task);
END $$;

-- Removes some old tasks, conversations, and sessions that hold nothing. Never waits. Returns whether there may be more.
-- Reads: all tables. Locks: what it removes, never waiting. Writes: all tables. Returns: whether there may be more.
CREATE FUNCTION fn.purge(retention_ms float8, conversation_retention_ms float8, session_retention_ms float8, p_limit int)
RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  ended_before float8 := fn.now_ms() - retention_ms; changed_before float8 := fn.now_ms() - conversation_retention_ms;
  used_before float8 := fn.now_ms() - session_retention_ms; gone text[];
BEGIN
  SELECT array_agg(old.id) INTO gone FROM (
    SELECT t.id FROM whoa.tasks t WHERE t.ended_at <= ended_before ORDER BY t.ended_at LIMIT p_limit FOR UPDATE SKIP LOCKED
  ) old;
  IF gone IS NOT NULL THEN PERFORM fn.drop_tasks(gone); END IF;
  WITH idle AS (
    DELETE FROM whoa.conversations c USING (
      SELECT o.tenant, o.conversation FROM whoa.conversations o
      WHERE o.changed_at <= changed_before AND o.current IS NULL AND o.debouncing IS NULL
      ORDER BY o.changed_at LIMIT p_limit FOR UPDATE SKIP LOCKED
    ) old WHERE c.tenant = old.tenant AND c.conversation = old.conversation RETURNING c.tenant, c.conversation
  ) DELETE FROM whoa.history h USING idle i WHERE h.tenant = i.tenant AND h.conversation = i.conversation;
  DELETE FROM whoa.sessions s USING (
    SELECT o.id FROM whoa.sessions o WHERE o.expires_at IS NULL AND o.last_held_at <= used_before
    ORDER BY o.last_held_at LIMIT p_limit FOR UPDATE SKIP LOCKED
  ) old WHERE s.id = old.id;
  DELETE FROM whoa.waiters w USING (
    SELECT o.agent, o.at, o.worker FROM whoa.waiters o WHERE o.at < used_before LIMIT p_limit FOR UPDATE SKIP LOCKED
  ) old WHERE w.agent = old.agent AND w.at = old.at AND w.worker = old.worker;
  RETURN to_json(coalesce(cardinality(gone), 0) = p_limit);
END $$;

CREATE FUNCTION fn.drop_tasks(ids text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM whoa.inputs i USING whoa.tasks t WHERE t.id = ANY (ids) AND i.owner = t.input_owner;
  DELETE FROM whoa.journal WHERE task = ANY (ids);
  DELETE FROM whoa.command_nonces WHERE task = ANY (ids);
  DELETE FROM whoa.questions WHERE task = ANY (ids);
  DELETE FROM whoa.tasks WHERE id = ANY (ids);
END $$;
