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

-- Reads: tasks, waiters, engines. Locks: offered tasks, never waiting. Writes: paused, waiters, tasks. Returns: whether to call it again.
CREATE FUNCTION fn.pause(of_kind text, of_name text, is_paused boolean) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now float8 := fn.now_ms();
BEGIN
  IF is_paused THEN
    INSERT INTO whoa.paused (kind, name) VALUES (of_kind, of_name) ON CONFLICT DO NOTHING;
    IF FOUND THEN PERFORM fn.tell_pause('pause.started', of_kind, of_name, now); END IF;
    RETURN 'false';
  END IF;
  DELETE FROM whoa.paused p WHERE p.kind = of_kind AND p.name = of_name;
  IF FOUND THEN PERFORM fn.tell_pause('pause.ended', of_kind, of_name, now); END IF;
  IF of_kind = 'agent' THEN
    PERFORM fn.wake_worker(of_name, now);
    PERFORM fn.offer_first(of_name, NULL);
    RETURN to_json(fn.repeat_offers(of_name, NULL, now) = 1000 /*maxOffers*/);
  ELSIF of_kind = 'all' THEN
    PERFORM fn.wake_worker(w.agent, now) FROM (SELECT DISTINCT agent FROM whoa.waiters) w WHERE EXISTS (
      SELECT FROM whoa.tasks t WHERE t.stage = 'ready' AND t.ready_queue IN (w.agent, '*?' /*SUSPECTS*/ || w.agent));
    PERFORM fn.offer_first(e.agent, NULL) FROM whoa.engines e;
    RETURN to_json(EXISTS (SELECT FROM whoa.engines e WHERE fn.repeat_offers(e.agent, NULL, now) = 1000 /*maxOffers*/));
  ELSE
    PERFORM fn.wake_worker(w.agent, now) FROM (SELECT DISTINCT agent FROM whoa.waiters) w WHERE EXISTS (
      SELECT FROM whoa.tasks t WHERE t.stage = 'ready' AND t.ready_queue IN (w.agent, '*?' /*SUSPECTS*/ || w.agent) AND t.tenant = of_name);
    PERFORM fn.offer_first(e.agent, of_name) FROM whoa.engines e;
    RETURN to_json(EXISTS (SELECT FROM whoa.engines e WHERE fn.repeat_offers(e.agent, of_name, now) = 1000 /*maxOffers*/));
  END IF;
END $$;

-- Lets an engine deliver an agent, or workers again. The first call of a change only writes it: what other transactions made ready
-- until then is there for the next ones, which move some of what waits.
-- Reads: tasks, waiters. Locks: agent's engine, moved tasks never waiting. Writes: engines, tasks, waiters. Returns: receipt, whether more.
CREATE FUNCTION fn.set_engine(of_agent text, of_engine text, lost_before float8) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now float8 := fn.now_ms(); present text; ready_queues text[]; task whoa.tasks; repeated int := 0;
BEGIN
  SELECT e.engine INTO present FROM whoa.engines e WHERE e.agent = of_agent;
  IF of_engine IS DISTINCT FROM present THEN
    PERFORM pg_advisory_xact_lock(hashtextextended('whoa. engine ' || of_agent, 0));
    IF of_engine IS NULL THEN
      DELETE FROM whoa.engines e WHERE e.agent = of_agent;
    ELSE
      INSERT INTO whoa.engines (agent, engine) VALUES (of_agent, of_engine) ON CONFLICT DO NOTHING;
      SELECT e.engine INTO present FROM whoa.engines e WHERE e.agent = of_agent;
      IF of_engine <> present THEN RETURN json_build_object('result', 'refused', 'engine', present); END IF;
    END IF;
    RETURN json_build_object('result', 'set', 'now', now, 'hasMore', true);
  END IF;
  ready_queues := CASE WHEN of_engine IS NULL THEN ARRAY['*~' /*OFFERED*/ || of_agent, '*}' /*OFFERED_SUSPECTS*/ || of_agent]
    ELSE ARRAY[of_agent, '*?' /*SUSPECTS*/ || of_agent] END;
  FOR task IN
    UPDATE whoa.tasks t SET offered_at = NULL, ready_queue = fn.to_ready_queue(t.agent, t.status, t.stop_undo, t.attempts)
    WHERE t.id = ANY (ARRAY(SELECT p.id FROM whoa.tasks p WHERE p.stage = 'ready' AND p.ready_queue = ANY (ready_queues)
      LIMIT 100 /*maxPromoted*/ FOR UPDATE SKIP LOCKED)) RETURNING t.*
  LOOP
    PERFORM fn.tell_ready(task, now);
  END LOOP;
  IF lost_before IS NOT NULL THEN repeated := fn.repeat_offers(of_agent, NULL, lost_before); END IF;
  RETURN json_build_object('result', 'set', 'now', now, 'hasMore', repeated = 1000 /*maxOffers*/
    OR EXISTS (SELECT FROM whoa.tasks t WHERE t.stage = 'ready' AND t.ready_queue = ANY (ready_queues)));
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
  PERFORM fn.tell_conversation(p_tenant, of_conversation, fn.now_ms());
  RETURN json_build_object('result', 'removed');
END $$;
