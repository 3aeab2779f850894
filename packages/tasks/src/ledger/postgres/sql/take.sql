-- How tasks reach workers. See `operations/take.ts`.

-- One take or claim of a session at a time: a request that is repeated must not overtake itself.
CREATE FUNCTION fn.open_session(session_id text) RETURNS whoa.sessions LANGUAGE plpgsql AS $$
DECLARE
  session whoa.sessions;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('whoa. session ' || session_id, 0));
  SELECT * INTO session FROM whoa.sessions s WHERE s.id = session_id FOR UPDATE;
  RETURN session;
END $$;

-- Reads: tasks, paused, inputs, history. Locks: session, picked tasks. Writes: tasks, sessions, waiters, store_state. Returns: tasks.
CREATE FUNCTION fn.take(
  session_id text, number int, p_worker text, agents text[], of_lease_ms float8, p_limit int, own_claim text, max_bytes float8,
  after_tenant text, max_attempts int, offer_agents text[], offer_tenants text[], offer_ids text[]
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  session whoa.sessions := fn.open_session(session_id); now float8 := fn.now_ms(); expired boolean;
  picked text[]; shown json; has_reserved boolean; may_take_suspect boolean; suspect text; next_at float8; offers text[]; lost json;
BEGIN
  IF session.is_over OR (session.id IS NULL AND number > 1) THEN RETURN json_build_object('result', 'session-ended'); END IF;
  IF number < coalesce(session.take_number, 0) THEN RETURN json_build_object('result', 'stale'); END IF;
  IF number > coalesce(session.take_number, 0) + 1 THEN RETURN json_build_object('result', 'session-ended'); END IF;
  expired := fn.record_contact(of_lease_ms, now, true);
  IF number = session.take_number THEN
    -- Excludes tasks that the session has since claimed by id: they already run.
    picked := ARRAY(SELECT p.id FROM unnest(session.last_taken[2:]) WITH ORDINALITY AS p (id, ordinal) JOIN whoa.tasks t USING (id)
      WHERE t.claim = session.last_taken[1] ORDER BY p.ordinal);
    RETURN json_build_object('result', 'taken', 'isRepeat', true, 'shouldSweep', expired, 'now', now,
      'tasks', fn.taken(picked, session_id, max_bytes));
  END IF;
  SELECT t.stage_at INTO next_at FROM whoa.tasks t WHERE t.stage = 'delayed' ORDER BY t.stage_at LIMIT 1;
  IF next_at <= now THEN
    PERFORM fn.promote_due(now);
    SELECT t.stage_at INTO next_at FROM whoa.tasks t WHERE t.stage = 'delayed' ORDER BY t.stage_at LIMIT 1;
  END IF;
  has_reserved := fn.has_reserved();
  -- What is being stopped comes first, no matter how many tenants wait. A pause or a limit never delays it.
  picked := fn.pick(ARRAY['*' /*SETTLE*/] || CASE WHEN has_reserved THEN
    ARRAY(SELECT '*!' /*UNDO*/ || a FROM unnest(agents) AS a) END, p_limit, after_tenant, '{}', NULL);
  may_take_suspect := has_reserved AND NOT fn.holds_suspect(session);
  IF offer_agents IS NOT NULL THEN
    SELECT o.picked, o.may_take_suspect, o.suspect, o.results INTO picked, may_take_suspect, suspect, offers
    FROM fn.pick_offers(offer_agents, offer_tenants, offer_ids, p_limit, max_attempts, now, picked, may_take_suspect) o;
    lost := fn.lost_offers(now);
  END IF;
  -- A worker with one ordinal takes suspects and others in turn.
  IF may_take_suspect AND cardinality(picked) < p_limit AND (p_limit > 1 OR number % 2 = 0) THEN
    suspect := fn.pick_suspect(agents, after_tenant, max_attempts, now);
    picked := picked || array_remove(ARRAY[suspect], NULL);
  END IF;
  -- Seldom is anything paused: one look at an empty table.
  IF EXISTS (SELECT FROM whoa.paused) THEN
    picked := fn.pick(fn.unpaused(agents), p_limit, after_tenant, picked,
      ARRAY(SELECT p.name FROM whoa.paused p WHERE p.kind = 'tenant'));
  ELSE
    picked := fn.pick(agents, p_limit, after_tenant, picked, NULL);
  END IF;
  IF may_take_suspect AND cardinality(picked) = 0 AND p_limit = 1 AND number % 2 = 1 THEN
    suspect := fn.pick_suspect(agents, after_tenant, max_attempts, now);
    picked := array_remove(ARRAY[suspect], NULL);
  END IF;
  IF cardinality(picked) > 0 THEN
    PERFORM fn.note_held(session_id, p_worker, of_lease_ms, number, own_claim || picked, suspect, now);
    shown := fn.hold(picked, session_id, own_claim, p_worker, max_bytes, now);
  END IF;
  IF cardinality(picked) < p_limit THEN
    PERFORM fn.add_waiter(p_worker, agents, now);
  ELSE
    PERFORM fn.remove_waiter(p_worker);
  END IF;
  RETURN json_build_object('result', 'taken', 'isRepeat', false, 'shouldSweep', expired, 'now', now, 'nextAt', next_at,
    'tasks', CASE WHEN cardinality(picked) > 0 THEN coalesce(shown, fn.taken(picked, session_id, max_bytes)) END, 'offers', offers,
    'lost', lost);
END $$;

-- Locks the tasks that engines handed out: named ones, or the first that wait for an agent and tenant. See `takeOffer`.
CREATE FUNCTION fn.pick_offers(
  agents text[], tenants text[], ids text[], p_limit int, max_attempts int, now float8,
  INOUT picked text[], INOUT may_take_suspect boolean, OUT suspect text, OUT results text[]
) LANGUAGE plpgsql AS $$
DECLARE
  offer record; wanted int; found text[]; one text; has_more boolean; result text;
  has_paused boolean := EXISTS (SELECT FROM whoa.paused);
BEGIN
  -- Named tasks that nothing holds back, all at once. The others follow one by one.
  found := CASE WHEN has_paused OR fn.agent_cap() IS NOT NULL OR fn.tenant_cap() IS NOT NULL THEN '{}' ELSE ARRAY(
    SELECT t.id FROM whoa.tasks t WHERE t.id = ANY (array_remove(ids, NULL)) AND t.id <> ALL (picked)
      AND t.stage IS NOT DISTINCT FROM 'ready' AND EXISTS (SELECT FROM unnest(agents, tenants, ids) AS a (agent, tenant, id)
        WHERE a.id = t.id AND t.tenant IS NOT DISTINCT FROM a.tenant AND t.ready_queue IS NOT DISTINCT FROM '*~' /*OFFERED*/ || a.agent)
    LIMIT p_limit - cardinality(picked) FOR UPDATE SKIP LOCKED) END;
  picked := picked || found;
  results := ARRAY(
    SELECT CASE WHEN a.id = ANY (found) AND a.ordinal = min(a.ordinal) OVER (PARTITION BY a.id) THEN 'taken' ELSE 'refused' END
    FROM unnest(ids) WITH ORDINALITY AS a (id, ordinal) ORDER BY a.ordinal);
  FOR offer IN
    SELECT a.agent, a.tenant, a.id, array_agg(a.ordinal::int ORDER BY a.ordinal) AS ordinals
    FROM unnest(agents, tenants, ids) WITH ORDINALITY AS a (agent, tenant, id, ordinal) WHERE results[a.ordinal] <> 'taken'
    GROUP BY a.agent, a.tenant, a.id ORDER BY min(a.ordinal)
  LOOP
    found := '{}';
    has_more := false;
    wanted := CASE WHEN has_paused AND EXISTS (SELECT FROM whoa.paused p
      WHERE (p.kind, p.name) IN (('all', ''), ('agent', offer.agent), ('tenant', offer.tenant)))
      THEN 0 ELSE fn.free_slots(offer.agent, offer.tenant, picked) END;
    IF wanted > 0 THEN
      wanted := least(wanted, cardinality(offer.ordinals), p_limit - cardinality(picked));
      IF may_take_suspect AND wanted > 0 THEN
        one := fn.pick_suspect_in('*}' /*OFFERED_SUSPECTS*/ || offer.agent, offer.tenant, offer.id, max_attempts, now);
        IF one IS NOT NULL THEN
          found := ARRAY[one];
          suspect := one;
          may_take_suspect := false;
        END IF;
      END IF;
      IF offer.id IS NOT NULL THEN
        IF cardinality(found) = 0 AND wanted > 0 THEN
          found := ARRAY(SELECT t.id FROM whoa.tasks t WHERE t.id = offer.id AND t.stage IS NOT DISTINCT FROM 'ready'
            AND t.tenant IS NOT DISTINCT FROM offer.tenant AND t.ready_queue IS NOT DISTINCT FROM '*~' /*OFFERED*/ || offer.agent
            AND t.id <> ALL (picked) FOR UPDATE SKIP LOCKED);
        END IF;
        -- Somebody else has just locked it: ask again.
        wanted := wanted - (cardinality(found) = 0 AND EXISTS (SELECT FROM whoa.tasks t WHERE t.id = offer.id
          AND t.stage IS NOT DISTINCT FROM 'ready' AND t.tenant IS NOT DISTINCT FROM offer.tenant
          AND t.ready_queue IS NOT DISTINCT FROM '*~' /*OFFERED*/ || offer.agent AND t.id <> ALL (picked)))::int;
      ELSIF wanted > cardinality(found) THEN
        found := found || ARRAY(
          SELECT t.id FROM whoa.tasks t WHERE t.stage = 'ready' AND t.ready_queue = '*~' /*OFFERED*/ || offer.agent
            AND t.tenant = offer.tenant AND t.id <> ALL (picked)
          ORDER BY t.priority DESC, t.stage_at, t.id LIMIT wanted - cardinality(found) FOR UPDATE SKIP LOCKED);
        has_more := EXISTS (SELECT FROM whoa.tasks t WHERE t.stage = 'ready' AND t.ready_queue = '*~' /*OFFERED*/ || offer.agent
            AND t.tenant = offer.tenant AND t.id <> ALL (picked || found))
          OR cardinality(found) > 0 AND EXISTS (SELECT FROM whoa.tasks t WHERE t.stage = 'ready'
            AND t.ready_queue = '*}' /*OFFERED_SUSPECTS*/ || offer.agent AND t.tenant = offer.tenant AND t.id <> ALL (picked || found));
      END IF;
      picked := picked || found;
      FOR i IN 1 .. cardinality(offer.ordinals) LOOP
        result := CASE WHEN i <= cardinality(found) THEN CASE WHEN has_more THEN 'more' ELSE 'taken' END
          WHEN i > wanted AND (wanted < 1 OR cardinality(picked) >= p_limit) THEN 'later'
          WHEN has_more THEN 'more' ELSE 'refused' END;
        results[offer.ordinals[i]] := result;
      END LOOP;
      -- A suspect waits until a session without one takes it.
      IF NOT may_take_suspect AND 'refused' = result AND coalesce(suspect <> ALL (found), true) THEN
        UPDATE whoa.tasks t SET offered_at = NULL WHERE t.id = (
          SELECT p.id FROM whoa.tasks p WHERE p.stage = 'ready' AND p.ready_queue = '*}' /*OFFERED_SUSPECTS*/ || offer.agent
            AND p.tenant = offer.tenant AND (offer.id = p.id) IS NOT FALSE AND p.offered_at IS NOT NULL
          ORDER BY p.priority DESC, p.stage_at, p.id LIMIT 1 FOR UPDATE SKIP LOCKED);
      END IF;
    END IF;
  END LOOP;
END $$;

-- Tells one worker at a time which tasks must be offered again.
CREATE FUNCTION fn.lost_offers(now float8) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM whoa.store_state p WHERE now - p.offers_told_at < 1000 /*offerIntervalMs*/ AND p.offers_told_at <= now)
    OR NOT EXISTS (SELECT FROM whoa.store_state FOR UPDATE SKIP LOCKED) THEN RETURN NULL; END IF;
  UPDATE whoa.store_state SET offers_told_at = now;
  RETURN (SELECT json_agg(fn.offered_task(t)) FROM whoa.tasks t WHERE t.id = ANY (ARRAY(
    SELECT p.id FROM whoa.tasks p WHERE p.stage = 'ready' AND p.ready_queue >= '*}' /*OFFERED_SUSPECTS*/
      AND p.ready_queue < '+' /*AFTER_RESERVED*/
      AND coalesce(p.offered_at + 595000 /*offerGapMs*/, p.stage_at) <= now - 5000 /*lostOfferMs*/
    ORDER BY coalesce(p.offered_at + 595000 /*offerGapMs*/, p.stage_at) LIMIT 1000 /*maxOffers*/)));
END $$;

-- Reads: tasks. Locks: tasks, never waiting. Writes: tasks. Returns: nothing.
CREATE FUNCTION fn.note_offered(ids text[]) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now float8 := fn.now_ms();
BEGIN
  UPDATE whoa.tasks t SET offered_at = now WHERE t.id = ANY (ARRAY(SELECT p.id FROM whoa.tasks p WHERE p.id = ANY (ids)
    AND p.stage IS NOT DISTINCT FROM 'ready'
    AND (p.ready_queue >= '*}' /*OFFERED_SUSPECTS*/ AND p.ready_queue < '+' /*AFTER_RESERVED*/) IS TRUE
    ORDER BY p.id FOR UPDATE SKIP LOCKED));
  RETURN 'null';
END $$;

-- Moves tasks whose time has come. Skips those that another transaction has locked.
CREATE FUNCTION fn.promote_due(now float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  task whoa.tasks; due_id text;
BEGIN
  FOR task IN
    UPDATE whoa.tasks t SET
      -- Rule: ready
      stage = 'ready', stage_at = now, policy = NULL, ready_queue = fn.to_ready_queue(t.agent, t.status, t.stop_undo, t.attempts)
    FROM (
      SELECT o.id FROM whoa.tasks o WHERE o.stage = 'delayed' AND o.stage_at <= now AND o.policy IS NULL
      ORDER BY o.stage_at LIMIT 100 /*maxPromoted*/ FOR UPDATE SKIP LOCKED
    ) due WHERE t.id = due.id RETURNING t.*
  LOOP
    PERFORM fn.tell_ready(task, now);
  END LOOP;
  FOR due_id IN
    SELECT o.id FROM whoa.tasks o WHERE o.stage = 'delayed' AND o.stage_at <= now AND o.policy IS NOT NULL
    ORDER BY o.stage_at LIMIT 100 /*maxPromoted*/
  LOOP
    PERFORM 1 FROM whoa.tasks t JOIN whoa.conversations c USING (tenant, conversation)
    WHERE t.id = due_id FOR UPDATE OF c SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    SELECT * INTO task FROM whoa.tasks t WHERE t.id = due_id AND t.stage IS NOT DISTINCT FROM 'delayed'
      AND t.policy IS NOT NULL AND t.stage_at <= now FOR UPDATE SKIP LOCKED;
    IF FOUND THEN PERFORM fn.admit_debounced(task, now); END IF;
  END LOOP;
END $$;

-- Returns the tenants with ready tasks in a ready queue, in order, starting after a given one.
CREATE FUNCTION fn.tenants_in(of_queue text, after_tenant text, p_limit int, paused text[]) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
DECLARE
  tenants text[] := '{}'; ordinal text COLLATE "C" := after_tenant;
BEGIN
  WHILE cardinality(tenants) < p_limit LOOP
    ordinal := (SELECT t.tenant FROM whoa.tasks t WHERE t.stage = 'ready' AND t.ready_queue = of_queue AND t.tenant > ordinal
      ORDER BY t.tenant LIMIT 1);
    EXIT WHEN ordinal IS NULL;
    CONTINUE WHEN ordinal = ANY (paused);
    tenants := tenants || ordinal;
  END LOOP;
  ordinal := '';
  WHILE cardinality(tenants) < p_limit AND after_tenant <> '' LOOP
    ordinal := (SELECT t.tenant FROM whoa.tasks t WHERE t.stage = 'ready' AND t.ready_queue = of_queue AND t.tenant > ordinal
      AND t.tenant <= after_tenant ORDER BY t.tenant LIMIT 1);
    EXIT WHEN ordinal IS NULL;
    CONTINUE WHEN ordinal = ANY (paused);
    tenants := tenants || ordinal;
  END LOOP;
  RETURN tenants;
END $$;

-- Locks ready tasks fairly across tenants: every tenant with ready tasks is served once before one is served again.
-- Skips tasks that another take has locked, so takes do not wait for each other.
CREATE FUNCTION fn.pick(names text[], p_limit int, after_tenant text, picked text[], paused text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  ready_queues text[]; tenants text[]; next_queues text[]; next_tenants text[]; share int; wanted int; found text[];
BEGIN
  SELECT coalesce(array_agg(l.ready_queue ORDER BY l.turn, l.ordinal), '{}'), coalesce(array_agg(l.tenant ORDER BY l.turn, l.ordinal), '{}')
  INTO ready_queues, tenants FROM (
    SELECT a.ready_queue, a.ordinal, n.tenant, n.turn FROM unnest(names) WITH ORDINALITY AS a (ready_queue, ordinal)
    CROSS JOIN LATERAL unnest(fn.tenants_in(a.ready_queue, after_tenant, p_limit, paused)) WITH ORDINALITY AS n (tenant, turn)
  ) l;
  WHILE cardinality(ready_queues) > 0 AND cardinality(picked) < p_limit LOOP
    -- A limit of an agent is shared too: the first tenant must not use all of it.
    share := ceil(least(p_limit - cardinality(picked), fn.agent_cap())::float8 / cardinality(ready_queues));
    next_queues := '{}';
    next_tenants := '{}';
    FOR i IN 1 .. cardinality(ready_queues) LOOP
      wanted := least(share, p_limit - cardinality(picked));
      EXIT WHEN wanted <= 0;
      wanted := least(wanted, fn.free_slots(ready_queues[i], tenants[i], picked));
      CONTINUE WHEN wanted <= 0;
      found := ARRAY(
        SELECT t.id FROM whoa.tasks t WHERE t.stage = 'ready' AND t.ready_queue = ready_queues[i] AND t.tenant = tenants[i]
          AND t.id <> ALL (picked)
        ORDER BY t.priority DESC, t.stage_at, t.id LIMIT wanted FOR UPDATE SKIP LOCKED
      );
      picked := picked || found;
      IF cardinality(found) = wanted THEN
        next_queues := next_queues || ready_queues[i];
        next_tenants := next_tenants || tenants[i];
      END IF;
    END LOOP;
    ready_queues := next_queues;
    tenants := next_tenants;
  END LOOP;
  RETURN picked;
END $$;

CREATE FUNCTION fn.unpaused(agents text[]) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN ARRAY(SELECT a FROM unnest(agents) AS a WHERE NOT EXISTS (
    SELECT FROM whoa.paused p WHERE (p.kind, p.name) IN (('all', ''), ('agent', a))));
END $$;

-- Returns how many more may run under a limit. Counting locks the row, so no two takes count the same capacity; a
-- locked row is skipped this time.
CREATE FUNCTION fn.free_slots(of_queue text, p_tenant text, picked text[]) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  slots int := 2147483647; cap int;
BEGIN
  IF starts_with(of_queue, '*' /*SETTLE*/) THEN RETURN slots; END IF;
  cap := fn.agent_cap();
  IF cap IS NOT NULL THEN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('whoa. agent ' || of_queue, 0)) THEN RETURN 0; END IF;
    slots := cap
      - (SELECT count(*) FROM (SELECT FROM whoa.tasks t WHERE t.stage = 'held' AND t.agent = of_queue LIMIT cap) held)
      - (SELECT count(*) FROM whoa.tasks t WHERE t.id = ANY (picked) AND t.agent IS NOT DISTINCT FROM of_queue);
  END IF;
  cap := fn.tenant_cap();
  IF cap IS NOT NULL THEN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('whoa. tenant ' || p_tenant, 0)) THEN RETURN 0; END IF;
    slots := least(slots, cap
      - (SELECT count(*) FROM (SELECT FROM whoa.tasks t WHERE t.stage = 'held' AND t.tenant = p_tenant LIMIT cap) held)
      - (SELECT count(*) FROM whoa.tasks t WHERE t.id = ANY (picked) AND t.tenant IS NOT DISTINCT FROM p_tenant));
  END IF;
  RETURN slots;
END $$;

-- Gives locked tasks to a session, and returns them as `taken` does; NULL if only that can show them: they are in a conversation,
-- have earlier orders, which are sent until they are confirmed, or are too large.
CREATE FUNCTION fn.hold(
  ids text[], session_id text, own_claim text, p_worker text, max_bytes float8, now float8
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  shown json; bytes float8; is_plain boolean; has_readers boolean := fn.has_readers();
BEGIN
  WITH held AS (
    UPDATE whoa.tasks t SET
      -- Rule: hold; session = session_id, claim = own_claim, worker = p_worker
      status = fn.next_status(t.status, 'claim'), stage = 'held', epoch = t.epoch + 1, attempts = t.attempts + 1,
      session = session_id, claim = own_claim, worker = p_worker, started_at = coalesce(t.started_at, now), stage_at = NULL,
      policy = NULL, released = NULL, offered_at = NULL, has_pending_orders = t.order_number > 0, ready_queue = NULL
    FROM unnest(ids) WITH ORDINALITY AS p (id, ordinal) WHERE t.id = p.id
    RETURNING fn.taken_row(t) AS row, p.ordinal, t.conversation IS NULL AND t.order_number = 0 AND t.questions_open IS NULL AS is_plain,
      (SELECT coalesce(json_agg(i.input ORDER BY i.position), '[]') FROM whoa.inputs i WHERE i.owner = t.input_owner) AS inputs,
      t.context, CASE WHEN has_readers THEN fn.readers(t.tenant, t.id) END AS readers
  ) SELECT json_agg(json_build_array(h.row, h.inputs, h.context, h.readers) ORDER BY h.ordinal),
    sum(octet_length(h.inputs::text) + coalesce(octet_length(h.context), 0)), bool_and(h.is_plain)
  INTO shown, bytes, is_plain FROM held h;
  -- The worker knows already. Check whether there are other listeners.
  IF fn.is_watched() THEN PERFORM fn.notify('status', t) FROM whoa.tasks t WHERE t.id = ANY (ids); END IF;
  RETURN CASE WHEN is_plain AND bytes <= max_bytes THEN shown END;
END $$;

-- Records that a session holds tasks. Taking more does not renew it: only beats show that its worker knows its tasks.
CREATE FUNCTION fn.note_held(
  session_id text, p_worker text, of_lease_ms float8, number int, picked text[], of_suspect text, now float8
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  had_some boolean := EXISTS (SELECT FROM whoa.tasks t WHERE t.stage = 'held' AND t.session = session_id);
BEGIN
  INSERT INTO whoa.sessions AS s (id, worker, lease_ms, expires_at, take_number, last_taken, suspect, last_held_at)
  VALUES (session_id, p_worker, of_lease_ms, now + of_lease_ms, coalesce(number, 0), coalesce(picked, '{}'), of_suspect, now)
  ON CONFLICT (id) DO UPDATE SET expires_at = CASE WHEN had_some THEN s.expires_at ELSE now + of_lease_ms END,
    take_number = coalesce(number, s.take_number), last_taken = coalesce(picked, s.last_taken),
    suspect = coalesce(of_suspect, s.suspect), last_held_at = now;
END $$;

-- Returns tasks for the session that holds them, with their inputs and history unless those are too large.
CREATE FUNCTION fn.taken(ids text[], session_id text, max_bytes float8) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
  task whoa.tasks; load json; shown json[] := '{}';
BEGIN
  FOR task IN
    SELECT t.* FROM unnest(ids) WITH ORDINALITY AS p (id, ordinal) JOIN whoa.tasks t USING (id)
    WHERE t.stage IS NOT DISTINCT FROM 'held' AND t.session = session_id ORDER BY p.ordinal
  LOOP
    load := fn.task_load(task);
    IF octet_length(load::text) <= max_bytes THEN
      max_bytes := max_bytes - octet_length(load::text);
    ELSE
      load := NULL;
    END IF;
    shown := shown || json_build_object('row', fn.taken_row(task), 'load', load, 'readers', fn.readers(task.tenant, task.id),
      'stop', fn.stop_order(task),
      'commands', CASE WHEN task.commands_waiting > 0 THEN fn.task_commands(task.id) END,
      'questions', CASE WHEN fn.has_questions(task) THEN fn.task_questions(task.id, false) END);
  END LOOP;
  RETURN array_to_json(shown);
END $$;
