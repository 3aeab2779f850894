import { MAX_SHOWN_TASKS } from '../../../overview.ts';
import { LIMITS } from '../../../rules/rules.ts';
import { toSqlText } from '../../../rules/to-sql.ts';
import { STATUS_TABLE } from '../../../status.ts';

const counted = Object.keys(STATUS_TABLE).map(
  (status) => `${toSqlText(status)}, (SELECT count(*) FROM (
    SELECT FROM whoa.tasks t WHERE t.tenant = of_tenant AND t.status = ${toSqlText(status)} LIMIT most) found)`,
);

/** Queries for operators: counts, tenants, workers. */
export const OVERVIEW: string = `
CREATE FUNCTION fn.count_tasks(of_tenant text, most int) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN json_build_object(${counted.join(', ')});
END $$;

-- Jumps to the next name in the index each time, however many tasks a tenant has.
CREATE FUNCTION fn.list_tenants(after text, page int) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  last text := after;
  names text[] := '{}';
BEGIN
  WHILE coalesce(array_length(names, 1), 0) < page LOOP
    SELECT t.tenant INTO last FROM whoa.tasks t WHERE t.tenant > last ORDER BY t.tenant LIMIT 1;
    EXIT WHEN NOT FOUND;
    names := names || last;
  END LOOP;
  RETURN array_to_json(names);
END $$;

-- Sessions that hold tasks, and workers that wait.
CREATE FUNCTION fn.list_workers(page int) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN json_build_object(
    'sessions', (SELECT coalesce(json_agg(s), '[]') FROM (
      SELECT s.worker AS "worker", s.expires_at AS "expiresAt",
        (SELECT count(*) FROM whoa.tasks t WHERE t.session = s.id AND t.stage = 'held') AS "holds",
        ARRAY(SELECT t.id FROM whoa.tasks t WHERE t.session = s.id AND t.stage = 'held' LIMIT ${MAX_SHOWN_TASKS}) AS "tasks"
      FROM whoa.sessions s WHERE s.expires_at IS NOT NULL ORDER BY s.expires_at LIMIT page
    ) s WHERE s."holds" > 0),
    'waiters', (SELECT coalesce(json_agg(w), '[]') FROM (
      SELECT w.worker AS "worker", array_agg(w.agent) AS "agents" FROM whoa.waiters w
      WHERE w.at >= fn.now_ms() - ${LIMITS.parkedMs} GROUP BY w.worker ORDER BY w.worker LIMIT page
    ) w),
    'now', fn.now_ms());
END $$;
`;
