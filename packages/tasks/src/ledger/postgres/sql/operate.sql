-- What operators change: deliveries are paused, records are removed.

-- Reads: store_state. Locks: store_state, if it writes. Writes: store_state. Returns: what was found, and whether to look.
CREATE FUNCTION fn.share(max_age float8, of_found text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now float8 := fn.now_ms(); is_due boolean := false;
BEGIN
  IF of_found IS NOT NULL THEN
    UPDATE whoa.store_state SET shared = of_found;
  ELSIF EXISTS (SELECT FROM whoa.store_state p WHERE now - p.shared_at >= max_age OR p.shared_at > now) THEN
    UPDATE whoa.store_state p SET shared_at = now WHERE now - p.shared_at >= max_age OR p.shared_at > now;
    is_due := FOUND;
  END IF;
  RETURN (SELECT json_build_object('isDue', is_due, 'found', p.shared) FROM whoa.store_state p);
END $$;

-- Reads: tasks, waiters. Locks: nothing. Writes: paused, waiters. Returns: true.
CREATE FUNCTION fn.pause(of_kind text, of_name text, is_paused boolean) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now float8 := fn.now_ms();
BEGIN
  IF is_paused THEN
    INSERT INTO whoa.paused (kind, name) VALUES (of_kind, of_name) ON CONFLICT DO NOTHING;
    RETURN 'true';
  END IF;
  DELETE FROM whoa.paused p WHERE p.kind = of_kind AND p.name = of_name;
  IF of_kind = 'agent' THEN
    PERFORM fn.wake_worker(of_name, now);
  ELSE
    PERFORM fn.wake_worker(w.agent, now) FROM (SELECT DISTINCT agent FROM whoa.waiters) w WHERE EXISTS (
      SELECT FROM whoa.tasks t WHERE t.stage = 'ready' AND t.ready_queue IN (w.agent, '*?' /*SUSPECTS*/ || w.agent) AND t.tenant = of_name);
  END IF;
  RETURN 'true';
END $$;

-- Reads: tasks. Locks: task. Writes: tasks, inputs, journal, command_nonces, questions. Returns: whether it was removed.
CREATE FUNCTION fn.remove_task(p_tenant text, task_id text, retention_ms float8) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks;
BEGIN
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id AND t.tenant IS NOT DISTINCT FROM p_tenant FOR UPDATE;
  IF task.id IS NULL OR task.ended_at <= fn.now_ms() - retention_ms THEN RETURN json_build_object('result', 'not-found'); END IF;
  IF task.ended_at IS NULL THEN RETURN json_build_object('result', 'live'); END IF;
  PERFORM fn.drop_tasks(ARRAY[task_id]);
  RETURN json_build_object('result', 'removed');
END $$;

-- Reads: conversations. Locks: conversation. Writes: conversations, history. Returns: whether it was removed.
CREATE FUNCTION fn.remove_conversation(p_tenant text, of_conversation text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  conversation_row whoa.conversations;
BEGIN
  SELECT * INTO conversation_row FROM whoa.conversations c WHERE c.tenant = p_tenant AND c.conversation = of_conversation FOR UPDATE;
  IF NOT FOUND THEN RETURN json_build_object('result', 'not-found'); END IF;
  IF conversation_row.current IS NOT NULL OR conversation_row.debouncing IS NOT NULL THEN
    RETURN json_build_object('result', 'live');
  END IF;
  DELETE FROM whoa.history h WHERE h.tenant = p_tenant AND h.conversation = of_conversation;
  DELETE FROM whoa.conversations c WHERE c.tenant = p_tenant AND c.conversation = of_conversation;
  RETURN json_build_object('result', 'removed');
END $$;
