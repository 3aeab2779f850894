-- Written by `npm run rules` from status.ts and rules.ts.

-- Returns the next status of a task, or why the action is rejected.
CREATE FUNCTION fn.next_status(status text, p_action text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE status
    WHEN 'init' THEN CASE p_action WHEN 'claim' THEN 'running' WHEN 'release' THEN 'not-running' WHEN 'cancel' THEN 'cancelled' WHEN 'success' THEN 'not-running' WHEN 'failed' THEN 'not-running' WHEN 'cancelled' THEN 'not-running' END
    WHEN 'running' THEN CASE p_action WHEN 'claim' THEN 'held' WHEN 'release' THEN 'init' WHEN 'cancel' THEN 'cancelling' WHEN 'success' THEN 'success' WHEN 'failed' THEN 'failed' WHEN 'cancelled' THEN 'cancelled' END
    WHEN 'cancelling' THEN CASE p_action WHEN 'claim' THEN 'cancelling' WHEN 'release' THEN 'cancelling' WHEN 'cancel' THEN 'cancelling' WHEN 'success' THEN 'cancelled' WHEN 'failed' THEN 'cancelled' WHEN 'cancelled' THEN 'cancelled' END
    WHEN 'success' THEN CASE p_action WHEN 'claim' THEN 'final' WHEN 'release' THEN 'final' WHEN 'cancel' THEN 'final' WHEN 'success' THEN 'final' WHEN 'failed' THEN 'final' WHEN 'cancelled' THEN 'final' END
    WHEN 'failed' THEN CASE p_action WHEN 'claim' THEN 'final' WHEN 'release' THEN 'final' WHEN 'cancel' THEN 'final' WHEN 'success' THEN 'final' WHEN 'failed' THEN 'final' WHEN 'cancelled' THEN 'final' END
    WHEN 'cancelled' THEN CASE p_action WHEN 'claim' THEN 'final' WHEN 'release' THEN 'final' WHEN 'cancel' THEN 'final' WHEN 'success' THEN 'final' WHEN 'failed' THEN 'final' WHEN 'cancelled' THEN 'final' END END
$$;

-- Returns what a policy does, by the status of the current task.
CREATE FUNCTION fn.admission(policy text, current text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE policy
    WHEN 'replace' THEN CASE current WHEN 'none' THEN 'start' WHEN 'init' THEN 'replace' WHEN 'running' THEN 'replace' WHEN 'cancelling' THEN 'replace' END
    WHEN 'queue' THEN CASE current WHEN 'none' THEN 'start' WHEN 'init' THEN 'wait' WHEN 'running' THEN 'wait' WHEN 'cancelling' THEN 'wait' END
    WHEN 'merge' THEN CASE current WHEN 'none' THEN 'start' WHEN 'init' THEN 'merge' WHEN 'running' THEN 'merge' WHEN 'cancelling' THEN 'merge' END
    WHEN 'steer' THEN CASE current WHEN 'none' THEN 'start' WHEN 'init' THEN 'steer' WHEN 'running' THEN 'steer' WHEN 'cancelling' THEN 'wait' END
    WHEN 'reject' THEN CASE current WHEN 'none' THEN 'start' WHEN 'init' THEN 'reject' WHEN 'running' THEN 'reject' WHEN 'cancelling' THEN 'reject' END END
$$;

-- Returns how hard a level is.
CREATE FUNCTION fn.to_rank(level text) RETURNS int LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE level WHEN 'drain' THEN 1 WHEN 'abort' THEN 2 WHEN 'kill' THEN 3 ELSE 0 END
$$;
