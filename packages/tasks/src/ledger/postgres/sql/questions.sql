-- What tasks ask, and what becomes of it. The task is locked first. See `operations/questions.ts` and `operations/answer.ts`.

-- Returns whether a task has questions that its worker must know.
CREATE FUNCTION fn.has_questions(task whoa.tasks) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(task.questions_open + task.questions_pending, 0) > 0
$$;

-- Writes to a task what its questions are now.
CREATE FUNCTION fn.count_questions(task_id text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE whoa.tasks t SET questions_open = found.open, questions_pending = found.pending FROM (
    SELECT count(*) FILTER (WHERE q.state = 'open') AS open, count(*) FILTER (WHERE q.state IN ('answered', 'unread')) AS pending
    FROM whoa.questions q WHERE q.task = task_id
  ) found WHERE t.id = task_id;
END $$;

-- Closes open questions of a task. Returns whether there were any. Its worker settles a cancelled task: then there is nothing to
-- journal for each question.
CREATE FUNCTION fn.close_open(task whoa.tasks, why text, now float8) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  ids text[];
BEGIN
  IF coalesce(task.questions_open, 0) = 0 THEN RETURN false; END IF;
  WITH closed AS (
  UPDATE whoa.questions q SET state = CASE WHEN why = 'cancelled' THEN 'closed' ELSE 'unread' END,
    closed_why = CASE WHEN q.expires_at <= now THEN 'expired' ELSE why END, closed_at = now
  WHERE q.task = close_open.task.id AND q.state IS NOT DISTINCT FROM 'open'
    AND (why <> 'expired' OR coalesce(q.expires_at <= now, false)) RETURNING q.asked_at, q.id
  ) SELECT array_agg(c.id ORDER BY c.asked_at, c.id) INTO ids FROM closed c;
  IF ids IS NULL THEN RETURN false; END IF;
  PERFORM fn.tell_questions('question.closed', task, ids, now);
  PERFORM fn.count_questions(task.id);
  RETURN true;
END $$;

-- Closes what is left of the questions of a task that ends.
CREATE FUNCTION fn.end_questions(task whoa.tasks, now float8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM fn.tell_questions('question.closed', task, ARRAY(SELECT q.id FROM whoa.questions q
    WHERE q.task = end_questions.task.id AND q.state IS NOT DISTINCT FROM 'open' ORDER BY q.asked_at, q.id), now);
  UPDATE whoa.questions q SET state = 'closed', closed_why = coalesce(q.closed_why, 'ended'), closed_at = coalesce(q.closed_at, now)
  WHERE q.task = end_questions.task.id AND q.state <> 'closed';
  PERFORM fn.count_questions(task.id);
END $$;

-- Asks and closes the questions of a batch. Returns why nothing was written.
CREATE FUNCTION fn.apply_questions(
  task whoa.tasks, asked_ids text[], asked json[], expires_ms float8[], closed_ids text[], whys text[],
  handled int[], now float8
) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  IF cardinality(asked_ids) + cardinality(closed_ids) = 0 THEN RETURN NULL; END IF;
  IF task.status <> 'running' THEN RETURN 'stopping'; END IF;
  IF EXISTS (SELECT FROM whoa.questions q WHERE q.task = apply_questions.task.id AND q.id = ANY (asked_ids))
    OR cardinality(closed_ids) <> (SELECT count(*) FROM whoa.questions q JOIN unnest(closed_ids, whys) AS c (id, why) ON q.id = c.id
      WHERE q.task = apply_questions.task.id
        AND q.state = CASE c.why WHEN 'journaled' THEN 'unread' WHEN 'withdrawn' THEN 'open' ELSE 'answered' END)
  THEN RETURN 'changed'; END IF;
  -- The model reads it first. So a parked task has no unread message, and no one waits for an answer with one.
  IF cardinality(asked_ids) > 0 AND task.commands_waiting > 0 AND EXISTS (SELECT FROM whoa.commands c
    WHERE c.task = apply_questions.task.id AND c.command->>'type' = 'steer' AND c.number <> ALL (handled))
  THEN RETURN 'unread'; END IF;
  IF coalesce(task.questions_open, 0) + cardinality(asked_ids) > 32 /*maxOpenQuestions*/ THEN RETURN 'full'; END IF;
  UPDATE whoa.questions q SET state = 'closed', closed_why = coalesce(q.closed_why, c.why), closed_at = coalesce(q.closed_at, now)
  FROM unnest(closed_ids, whys) AS c (id, why) WHERE q.task = apply_questions.task.id AND q.id = c.id;
  INSERT INTO whoa.questions (task, id, tenant, state, asked, asked_at, expires_at)
  SELECT task.id, a.id, task.tenant, 'open', a.asked, now, now + a.expires_ms
  FROM unnest(asked_ids, asked, expires_ms) AS a (id, asked, expires_ms);
  PERFORM fn.tell_questions('question.closed', task, ARRAY(SELECT c.id FROM unnest(closed_ids, whys) AS c (id, why)
    WHERE c.why = 'withdrawn'), now);
  PERFORM fn.tell_questions('question.asked', task, asked_ids, now);
  PERFORM fn.count_questions(task.id);
  RETURN NULL;
END $$;

-- Answers a question. Its state decides, once what is due has happened.
-- Reads: tasks, questions. Locks: task. Writes: questions, tasks, waiters. Returns: when it was accepted, or the question.
CREATE FUNCTION fn.answer(
  p_tenant text, task_id text, question_id text, given json, p_nonce text, retention_ms float8
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks; question whoa.questions; now float8;
BEGIN
  SELECT * INTO task FROM whoa.tasks t WHERE t.id = task_id AND t.tenant IS NOT DISTINCT FROM p_tenant FOR UPDATE;
  now := fn.now_ms();
  IF task.id IS NULL OR task.ended_at <= now - retention_ms THEN RETURN json_build_object('result', 'not-found'); END IF;
  SELECT * INTO question FROM whoa.questions q WHERE q.task = task_id AND q.id = question_id;
  IF NOT FOUND THEN RETURN json_build_object('result', 'not-found'); END IF;
  -- A task that has asked has started, so its conversation need not be locked.
  IF fn.apply_due(task, now) THEN
    SELECT * INTO question FROM whoa.questions q WHERE q.task = task_id AND q.id = question_id;
  END IF;
  -- Check this first: since the first request, the question may have been closed and the task may have ended.
  IF question.nonce = p_nonce THEN RETURN json_build_object('result', 'accepted', 'at', question.answered_at); END IF;
  IF question.state <> 'open' THEN
    RETURN json_build_object('result', 'too-late', 'question', fn.question_record(question));
  END IF;
  UPDATE whoa.questions q SET state = 'answered', answer = given, answered_at = now, nonce = p_nonce
  WHERE q.task = task_id AND q.id = question_id;
  PERFORM fn.count_questions(task_id);
  PERFORM fn.tell_questions('question.answered', task, ARRAY[question_id], now);
  PERFORM fn.send_order(task_id, 'command');
  RETURN json_build_object('result', 'accepted', 'at', now);
END $$;

-- Returns whether a task is past its deadline and no worker holds it: a worker stops its task itself.
CREATE FUNCTION fn.is_overdue(task whoa.tasks, now float8) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN coalesce(task.deadline <= now AND (task.status = 'init' OR task.stage = 'parked'), false);
END $$;

-- Returns whether something about a task is due: whoever looks at it first makes it happen.
CREATE FUNCTION fn.is_due(task whoa.tasks, now float8) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN fn.is_overdue(task, now) OR (task.questions_open > 0 AND EXISTS (SELECT FROM whoa.questions q
    WHERE q.task = is_due.task.id AND q.state = 'open' AND q.expires_at <= now));
END $$;

-- Makes what is due about a locked task happen: its deadline, and the time of its questions. The conversation of one that may not
-- have started is locked. Returns whether there was anything.
CREATE FUNCTION fn.apply_due(task whoa.tasks, now float8) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF fn.is_overdue(task, now) THEN
    PERFORM fn.stop_task(task, fn.reason('{"kind":"deadline","message":"the deadline of the task has passed"}' /*OVERDUE*/, now),
      'drain' /*level*/, 10000 /*abortMs*/, 12000 /*killMs*/, false, now);
    RETURN true;
  END IF;
  IF coalesce(task.questions_open, 0) = 0 OR NOT fn.close_open(task, 'expired', now) THEN RETURN false; END IF;
  PERFORM fn.send_order(task.id, 'command');
  RETURN true;
END $$;

-- Returns whether an open question has expired, or a parked task is past its deadline.
CREATE FUNCTION fn.has_expired(now float8) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT FROM whoa.questions q WHERE q.state = 'open' AND q.expires_at <= now)
    OR EXISTS (SELECT FROM whoa.tasks t WHERE t.stage = 'parked' AND t.deadline <= now);
END $$;

-- Closes questions that were not answered in time, and cancels parked tasks at their deadline. Returns whether there are more.
-- Skips what another transaction has locked.
CREATE FUNCTION fn.expire_questions(p_limit int, now float8) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks; expired_id text;
BEGIN
  FOREACH expired_id IN ARRAY ARRAY(
    SELECT e.id FROM (
      (SELECT q.task AS id, q.expires_at AS at FROM whoa.questions q WHERE q.state = 'open' AND q.expires_at <= now
        ORDER BY q.expires_at, q.task LIMIT p_limit)
      UNION ALL
      (SELECT t.id, t.deadline FROM whoa.tasks t WHERE t.stage = 'parked' AND t.deadline <= now ORDER BY t.deadline, t.id LIMIT p_limit)
    ) e GROUP BY e.id ORDER BY min(e.at), e.id LIMIT p_limit
  ) LOOP
    SELECT * INTO task FROM whoa.tasks t WHERE t.id = expired_id FOR UPDATE SKIP LOCKED;
    IF FOUND THEN PERFORM fn.apply_due(task, now); END IF;
  END LOOP;
  RETURN fn.has_expired(now);
END $$;

-- The caller removes null fields.
CREATE FUNCTION fn.question_record(question whoa.questions) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN json_build_object('id', question.id, 'asked', question.asked, 'askedAt', question.asked_at, 'expiresAt', question.expires_at,
    'answer', question.answer, 'answeredAt', question.answered_at, 'why', question.closed_why, 'closedAt', question.closed_at);
END $$;

-- Returns the questions of a task that are not closed, or all.
CREATE FUNCTION fn.task_questions(task_id text, are_all boolean) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT coalesce(json_agg(fn.question_record(q) ORDER BY q.asked_at, q.id), '[]')
    FROM whoa.questions q WHERE q.task = task_id AND (are_all OR q.state <> 'closed'));
END $$;

-- Lists open questions of a tenant after a given one that can be answered, oldest first.
-- Reads: questions, tasks. Locks and writes: nothing. Returns: questions.
CREATE FUNCTION fn.list_questions(p_tenant text, after_at float8, after_id text, page int) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now float8 := fn.now_ms();
BEGIN
  RETURN (SELECT coalesce(json_agg(fn.question_record(q) ORDER BY q.asked_at, q.id), '[]') FROM (
    SELECT * FROM whoa.questions o WHERE o.tenant = p_tenant AND o.state = 'open' AND (o.asked_at, o.id) > (after_at, after_id)
      AND (o.expires_at <= now) IS NOT TRUE
      AND NOT EXISTS (SELECT FROM whoa.tasks t WHERE t.id = o.task AND fn.is_overdue(t, now))
    ORDER BY o.asked_at, o.id LIMIT page
  ) q);
END $$;

-- Counts what waits for people, of all tenants.
-- Reads: questions, tasks. Locks and writes: nothing. Returns: the figures.
CREATE FUNCTION fn.figures(p_limit int) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT json_build_object('openQuestions', count(*), 'oldestQuestionAt', min(o.asked_at), 'now', fn.now_ms(),
    'parked', count(DISTINCT o.task) FILTER (WHERE o.stage = 'parked'),
    'asking', count(DISTINCT o.task) FILTER (WHERE o.stage IS DISTINCT FROM 'parked'))
  FROM (SELECT q.task, q.asked_at, t.stage FROM whoa.questions q LEFT JOIN whoa.tasks t ON t.id = q.task
    WHERE q.state = 'open' AND q.tenant >= '' AND q.asked_at IS NOT NULL LIMIT p_limit) o);
END $$;
