-- Read queries: a task, a page of a tenant's tasks, part of a journal, a conversation.

-- Reads: tasks, questions, inputs, commands. Locks and writes: nothing. Returns: a record or NULL, or that something is due.
CREATE FUNCTION fn.get_task(p_tenant text, task_id text, retention_ms float8) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks; now float8 := fn.now_ms();
BEGIN
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id AND t.tenant IS NOT DISTINCT FROM p_tenant;
  -- Hides tasks past their retention, whether or not they have been removed yet.
  IF task.id IS NULL OR task.ended_at <= now - retention_ms THEN RETURN NULL; END IF;
  IF fn.is_due(task, now) THEN RETURN json_build_object('isDue', true); END IF;
  RETURN fn.task_record(task);
END $$;

-- Reads a task about which something is due, which happens first.
-- Reads: tasks, questions, inputs, commands. Locks: conversation, task. Writes: what is due. Returns: a record or NULL.
CREATE FUNCTION fn.get_due_task(p_tenant text, task_id text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
BEGIN
  PERFORM fn.lock_conversation(task_id);
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id AND t.tenant IS NOT DISTINCT FROM p_tenant FOR UPDATE;
  IF NOT FOUND THEN RETURN NULL; END IF;
  PERFORM fn.apply_due(task, fn.now_ms());
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id;
  RETURN fn.task_record(task);
END $$;

-- Returns a page after a cursor, newest first: each kind of query has an index in this order.
-- Reads: tasks, commands. Locks and writes: nothing. Returns: heads.
CREATE FUNCTION fn.list_tasks(
  p_tenant text, of_status text, of_conversation text, before_at float8, before_id text, page int, of_background text
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks; shown json[] := '{}'; source refcursor;
BEGIN
  before_at := coalesce(before_at, 'Infinity');
  before_id := coalesce(before_id, '');
  IF of_conversation IS NOT NULL THEN
    OPEN source FOR SELECT * FROM whoa.tasks t WHERE t.tenant = p_tenant AND t.conversation = of_conversation
      AND (of_status IS NULL OR t.status = of_status)
      AND (t.created_at, t.id) < (before_at, before_id) ORDER BY t.created_at DESC, t.id DESC LIMIT page;
  ELSIF of_background IS NOT NULL THEN
    OPEN source FOR SELECT * FROM whoa.tasks t WHERE t.tenant = p_tenant AND t.key LIKE 'background/%' /*BACKGROUND_PATTERN*/
      AND t.conversation IS NULL AND regexp_replace(t.key, '/[^/]*$', '') = 'background/' /*BACKGROUND*/ || of_background
      AND (of_status IS NULL OR t.status = of_status)
      AND (t.created_at, t.id) < (before_at, before_id) ORDER BY t.created_at DESC, t.id DESC LIMIT page;
  ELSIF of_status IS NOT NULL THEN
    OPEN source FOR SELECT * FROM whoa.tasks t WHERE t.tenant = p_tenant AND t.status = of_status
      AND (t.created_at, t.id) < (before_at, before_id) ORDER BY t.created_at DESC, t.id DESC LIMIT page;
  ELSE
    -- One piece of the same index for each status.
    OPEN source FOR SELECT t.* FROM unnest('{init,running,cancelling,success,failed,cancelled}' /*STATUSES*/::text[]) AS s (status)
      CROSS JOIN LATERAL (SELECT * FROM whoa.tasks t WHERE t.tenant = p_tenant AND t.status = s.status
        AND (t.created_at, t.id) < (before_at, before_id) ORDER BY t.created_at DESC, t.id DESC LIMIT page) t
      ORDER BY t.created_at DESC, t.id DESC LIMIT page;
  END IF;
  LOOP
    FETCH source INTO task;
    EXIT WHEN NOT FOUND;
    shown := shown || fn.task_summary(task);
  END LOOP;
  CLOSE source;
  RETURN json_build_object('now', fn.now_ms(), 'tasks', array_to_json(shown));
END $$;

-- Reads: tasks, journal. Locks and writes: nothing. Returns: entries.
CREATE FUNCTION fn.read_journal(p_tenant text, task_id text, after int, page int, retention_ms float8)
RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
BEGIN
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id AND t.tenant IS NOT DISTINCT FROM p_tenant;
  IF task.id IS NULL OR task.ended_at <= fn.now_ms() - retention_ms THEN RETURN '[]'; END IF;
  RETURN (SELECT coalesce(json_agg(json_build_object('position', e.position, 'epoch', e.epoch, 'at', e.at, 'event', e.event,
      'claim', e.claim, 'said', e.said)), '[]')
    FROM (SELECT * FROM whoa.journal j WHERE j.task = task_id AND j.position > after ORDER BY j.position LIMIT page) e);
END $$;

-- Reads: conversations, history. Locks and writes: nothing. Returns: a record or NULL.
CREATE FUNCTION fn.get_conversation(p_tenant text, of_conversation text, retention_ms float8) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  conversation_row whoa.conversations;
BEGIN
  SELECT * INTO conversation_row FROM whoa.conversations c WHERE c.tenant = p_tenant AND c.conversation = of_conversation;
  IF NOT FOUND OR (conversation_row.current IS NULL AND conversation_row.debouncing IS NULL
    AND conversation_row.changed_at <= fn.now_ms() - retention_ms) THEN
    RETURN NULL;
  END IF;
  RETURN json_build_object('tenant', conversation_row.tenant, 'conversation', conversation_row.conversation,
    'current', conversation_row.current,
    'waiting', conversation_row.waiting, 'debouncing', conversation_row.debouncing, 'changedAt', conversation_row.changed_at,
    'history', fn.conversation_history(conversation_row.tenant, conversation_row.conversation));
END $$;
