import type { Queries, Session } from '../../operations/tables.ts';
import { type Database, recordOf } from './database.ts';

/** Jumps to the next name in the index each time, however many tasks a tenant has. */
const TENANTS = `
WITH RECURSIVE names (tenant, number) AS (
  SELECT (SELECT min(tenant) FROM tasks WHERE tenant > ?), 1
  UNION ALL
  SELECT (SELECT min(tenant) FROM tasks WHERE tenant > names.tenant), number + 1 FROM names
  WHERE names.tenant IS NOT NULL AND number < ?
) SELECT tenant FROM names WHERE tenant IS NOT NULL
`;

const WAITERS = `
SELECT worker, json_group_array(agent) AS agents FROM waiters WHERE at >= ? GROUP BY worker ORDER BY worker LIMIT ?
`;

/** Queries for operators. */
export function overviewTables(database: Database): Pick<Queries, 'countStatus' | 'tenants' | 'sessions' | 'waiters'> {
  return {
    countStatus: ({ tenant, status }, limit) => {
      const sql = 'SELECT count(*) AS number FROM (SELECT 1 FROM tasks WHERE tenant = ? AND status = ? LIMIT ?)';
      return Number(database.get(sql, [tenant, status, limit])?.['number']);
    },
    tenants: (after, limit) => database.all(TENANTS, [after, limit]).map((row) => row['tenant'] as string),
    sessions: (limit) =>
      database
        .all('SELECT record FROM worker_sessions WHERE expiresAt IS NOT NULL ORDER BY expiresAt LIMIT ?', [limit])
        .map((row) => recordOf<Session>(row)!),
    waiters: (since, limit) =>
      database.all(WAITERS, [since, limit]).map((row) => ({
        worker: row['worker'] as string,
        agents: JSON.parse(row['agents'] as string) as string[],
      })),
  };
}
