-- How records are returned to callers.

CREATE FUNCTION fn.stop_order(task whoa.tasks) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF task.stop_level IS NULL THEN RETURN NULL; END IF;
  RETURN json_build_object('level', task.stop_level, 'reason', task.stop_reason, 'undo', task.stop_undo,
    'abortAt', task.stop_abort_at, 'killAt', task.stop_kill_at);
END $$;

CREATE FUNCTION fn.task_commands(task_id text) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT coalesce(json_agg(json_build_array(c.number, c.command) ORDER BY c.number), '[]')
    FROM whoa.commands c WHERE c.task = task_id);
END $$;

CREATE FUNCTION fn.input_owner(of_owner text) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT coalesce(json_agg(i.input ORDER BY i.position), '[]') FROM whoa.inputs i WHERE i.owner = of_owner);
END $$;

CREATE FUNCTION fn.conversation_history(p_tenant text, of_conversation text) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF of_conversation IS NULL THEN RETURN '[]'; END IF;
  RETURN (SELECT coalesce(json_agg(h.message ORDER BY h.position), '[]')
    FROM whoa.history h WHERE h.tenant = p_tenant AND h.conversation = of_conversation);
END $$;

-- Returns a row and its waiting commands; the caller removes null and secret fields.
CREATE FUNCTION fn.task_summary(task whoa.tasks) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN json_build_object('row', row_to_json(task), 'stop', fn.stop_order(task),
    'commands', CASE WHEN task.commands_waiting > 0 THEN fn.task_commands(task.id) END);
END $$;

CREATE FUNCTION fn.task_record(task whoa.tasks) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN json_build_object('row', row_to_json(task), 'inputs', fn.input_owner(task.input_owner), 'context', task.context,
    'stop', fn.stop_order(task), 'commands', CASE WHEN task.commands_waiting > 0 THEN fn.task_commands(task.id) END,
    'questions', CASE WHEN task.questions_open IS NOT NULL THEN fn.task_questions(task.id, true) END);
END $$;

-- Returns what the worker of a task must know of its row, in the order of `TAKEN` in `rows.ts`, as texts: their types are not
-- looked up one by one.
CREATE FUNCTION fn.taken_row(task whoa.tasks) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT array_to_json(ARRAY[
    task.id, task.tenant, task.agent, task.conversation, task.title, task.key, task.nonce, array_to_json(task.superseded)::text,
    task.steered, task.priority::text, task.not_before::text, task.deadline::text, task.status, task.stage, task.epoch::text,
    task.attempts::text, task.crashes::text, task.worker, task.created_at::text, task.started_at::text, task.commands_sent::text,
    task.order_number::text, task.position::text, task.journal_bytes::text, task.traceparent, task.started_by, task.session,
    task.claim, task.activity, task.questions_open::text])
$$;

CREATE FUNCTION fn.task_load(task whoa.tasks) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN json_build_object('inputs', fn.input_owner(task.input_owner), 'history', fn.conversation_history(task.tenant, task.conversation),
    'context', task.context);
END $$;

-- Returns the inboxes of processes in which clients read a task.
CREATE FUNCTION fn.readers(tenant text, task_id text) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN ARRAY(SELECT i.inbox FROM whoa.interests i JOIN whoa.inboxes b ON b.inbox = i.inbox AND b.until > clock_timestamp()
    WHERE i.name = 'r:' || tenant || '/' || task_id);
END $$;

-- Returns whether clients read any task.
CREATE FUNCTION fn.has_readers() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT FROM whoa.interests i WHERE i.name >= 'r:' AND i.name < 'r;');
END $$;

-- Returns the complete orders for the worker of a task.
CREATE FUNCTION fn.task_orders(task whoa.tasks, now float8) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN json_build_object('now', now, 'orderNumber', task.order_number, 'stop', fn.stop_order(task),
    'commands', CASE WHEN task.commands_waiting > 0 THEN fn.task_commands(task.id) END,
    'readers', fn.readers(task.tenant, task.id),
    'questions', CASE WHEN fn.has_questions(task) THEN fn.task_questions(task.id, false) END);
END $$;

-- Appends the time to a reason without parsing it: it may contain what Postgres cannot read.
CREATE FUNCTION fn.reason(given text, at float8) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT (left(given, -1) || CASE WHEN given = '{}' THEN '' ELSE ',' END || '"at":' || at || '}')::json
$$;

CREATE FUNCTION fn.own_reason(kind text, message text, at float8) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_build_object('kind', kind, 'message', message, 'at', at)
$$;
