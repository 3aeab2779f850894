-- The start and end of every query.

-- The store's clock.
CREATE FUNCTION fn.now_ms() RETURNS float8 LANGUAGE sql VOLATILE AS $$
  SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8
$$;

-- Sets up the transaction for the operations, whatever the defaults of the role. Unless the connection is unshared and
-- was set up before, every setting ends with the transaction: a pooler hands the connection to other programs. What was
-- acknowledged is on disk. Every row is found through an index: a plan made while a table was empty must not scan it
-- once it is full. For the same reason a statement that names a task's id compares its other columns with IS NOT
-- DISTINCT FROM: then only the index of ids serves it, and not one that was empty. One plan serves every value. A read-
-- only server is rejected for reads too: its data may be out of date. So is a client that cannot use the format. A
-- client that changes the format locks the table against readers first: running transactions end before, and later ones
-- see the new format.
CREATE FUNCTION fn.enter(lock_ms text, tenant_cap text, agent_cap text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  found int; feeds text;
BEGIN
  IF current_setting('transaction_read_only')::boolean THEN
    RAISE EXCEPTION 'this server is read-only' USING ERRCODE = '25006';
  END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'default_transaction_isolation is not read committed; set it: ALTER ROLE % SET %',
      quote_ident(current_user), 'default_transaction_isolation = ''read committed''' USING ERRCODE = 'WH001';
  END IF;
  SELECT l.format, l.feeds INTO found, feeds FROM whoa.layout l;
  IF found NOT BETWEEN 2 /*OLDEST_FORMAT*/ AND 2 /*FORMAT*/ THEN RAISE EXCEPTION '%', found USING ERRCODE = 'WH002'; END IF;
  -- Which events consumers want. Registering one locks the table as well.
  IF feeds <> '' THEN PERFORM set_config('whoa_store.feeds', feeds, true); END IF;
  IF current_setting('whoa_store.ready', true) IS DISTINCT FROM lock_ms THEN PERFORM fn.set_up(lock_ms, true); END IF;
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM set_config('synchronous_commit', 'on', true); END IF;
  IF tenant_cap IS NOT NULL THEN PERFORM set_config('whoa_store.tenant_cap', tenant_cap, true); END IF;
  IF agent_cap IS NOT NULL THEN PERFORM set_config('whoa_store.agent_cap', agent_cap, true); END IF;
END $$;

-- Sets the planner and the lock timeout, for this transaction or for the connection: of a connection that no pooler shares.
-- Reads: nothing. Locks and writes: nothing. Returns: nothing.
CREATE FUNCTION fn.set_up(lock_ms text, is_local boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('lock_timeout', lock_ms, is_local), set_config('enable_seqscan', 'off', is_local),
    set_config('enable_bitmapscan', 'off', is_local), set_config('enable_hashjoin', 'off', is_local),
    set_config('enable_mergejoin', 'off', is_local), set_config('plan_cache_mode', 'force_generic_plan', is_local),
    set_config('jit', 'off', is_local), set_config('whoa_store.ready', lock_ms, is_local);
END $$;

-- Returns how many tasks of a tenant, or of an agent, may run at the same time; NULL: any number.
CREATE FUNCTION fn.tenant_cap() RETURNS int LANGUAGE sql STABLE AS $$
  SELECT nullif(current_setting('whoa_store.tenant_cap', true), '')::int
$$;
CREATE FUNCTION fn.agent_cap() RETURNS int LANGUAGE sql STABLE AS $$
  SELECT nullif(current_setting('whoa_store.agent_cap', true), '')::int
$$;

-- Records a hint for each process that wants one of these names. The caller sends them after the commit: a notification
-- inside the transaction would make every commit of the database wait for the flush of this one. The content of a hint is
-- never parsed: a reason may contain what Postgres cannot read.
CREATE FUNCTION fn.add_hint(names text[], hint json) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  receivers text[] := ARRAY(SELECT DISTINCT i.inbox FROM whoa.interests i
    JOIN whoa.inboxes b ON b.inbox = i.inbox AND b.until > clock_timestamp() WHERE i.name = ANY (names));
BEGIN
  FOR i IN 1 .. cardinality(receivers) LOOP
    PERFORM set_config('whoa_store.hints', coalesce(current_setting('whoa_store.hints', true), '')
      || json_build_array(receivers[i], hint) || ',', true);
  END LOOP;
END $$;

-- The names under which processes want to hear of a task.
CREATE FUNCTION fn.listened(id text, tenant text, worker text, conversation text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT ARRAY['*', 't:' || tenant, 'c:' || tenant || '/' || conversation, 'i:' || id, 'r:' || tenant || '/' || id, 'w:' || worker]
$$;

-- A cancel includes its order, for the claim that holds the task: without the claim no client can forge one.
CREATE FUNCTION fn.notify(kind text, task whoa.tasks) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM fn.add_hint(fn.listened(task.id, task.tenant, task.worker, task.conversation), json_build_array(kind, task.id,
    task.tenant, task.worker, task.conversation,
    CASE WHEN kind = 'cancel' AND task.claim IS NOT NULL AND task.stage = 'held' THEN json_build_object('epoch', task.epoch,
      'claim', task.claim, 'orderNumber', task.order_number, 'stop', fn.stop_order(task)) END));
END $$;

-- Returns the recorded hints, as the text of a JSON array.
CREATE FUNCTION fn.pending_notifications() RETURNS text LANGUAGE sql STABLE AS $$
  SELECT '[' || left(nullif(current_setting('whoa_store.hints', true), ''), -1) || ']'
$$;

-- Notifies without waiting for the disk: a lost notification is only a lost hint. Don't notify in a transaction that writes:
-- if the server's queue is full, it fails.
-- Reads: nothing. Locks and writes: nothing. Returns: nothing.
CREATE FUNCTION fn.notify_all(channels text[], payloads text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM pg_notify(n.channel, n.payload) FROM unnest(channels, payloads) AS n (channel, payload);
END $$;

-- Renews an inbox for a while, adds interests to it, and removes inboxes that were not renewed. Returns whether it was there
-- before, how many there are, and the workers of the tasks that are read from now on.
-- Reads: inboxes, tasks. Locks: its inbox, old ones never waiting. Writes: inboxes, interests. Returns: these.
CREATE FUNCTION fn.express(own_inbox text, names text[], for_ms float8) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  moment timestamptz := clock_timestamp(); is_known boolean;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE whoa.inboxes b SET until = moment + for_ms * interval '1 millisecond' WHERE b.inbox = own_inbox;
  is_known := FOUND;
  IF NOT is_known THEN INSERT INTO whoa.inboxes (inbox, until) VALUES (own_inbox, moment + for_ms * interval '1 millisecond'); END IF;
  INSERT INTO whoa.interests (name, inbox) SELECT DISTINCT n.name, own_inbox FROM unnest(names) AS n (name) ON CONFLICT DO NOTHING;
  DELETE FROM whoa.inboxes b USING (
    SELECT o.inbox FROM whoa.inboxes o WHERE o.until < moment ORDER BY o.until LIMIT 100 FOR UPDATE SKIP LOCKED
  ) old WHERE b.inbox = old.inbox;
  RETURN json_build_object('isKnown', is_known, 'inboxes', (SELECT count(*) FROM whoa.inboxes), 'workers', (
    SELECT coalesce(json_agg(json_build_array(i.inbox, t.id, t.tenant, t.worker)), '[]')
    FROM unnest(names) AS n (name) JOIN whoa.tasks t ON t.id = regexp_replace(n.name, '^.*/', '') AND t.stage = 'held'
    JOIN whoa.interests i ON i.name = 'w:' || t.worker JOIN whoa.inboxes b ON b.inbox = i.inbox AND b.until > moment
    WHERE n.name = 'r:' || t.tenant || '/' || t.id));
END $$;
-- Reads: interests. Locks: what it removes. Writes: interests. Returns: nothing.
CREATE FUNCTION fn.withdraw(own_inbox text, names text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  DELETE FROM whoa.interests i WHERE i.inbox = own_inbox AND i.name = ANY (names);
END $$;
