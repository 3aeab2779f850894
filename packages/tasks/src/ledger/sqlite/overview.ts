import type { PauseTarget, Queue } from '../../overview.ts';
import type { Queries, ReadyQueue, Session } from '../operations/tables.ts';
import { DEFAULTS } from '../rules/rules.ts';
import { toAgent } from '../rules/suspects.ts';
import { type Database, parseRecord } from './database.ts';

/** Jumps to the next name in the index each time, no matter how many tasks a tenant has. */
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

/** Jumps to the next ready queue in the index each time, no matter how many tasks are ready in one. */
const NEXT_READY_QUEUE = `
SELECT tenant, readyQueue FROM tasks WHERE stage = 'ready' AND (tenant, readyQueue) > (?, ?) ORDER BY tenant, readyQueue LIMIT 1
`;
const FIRST_OF_PRIORITY = `
SELECT priority, stageAt FROM tasks WHERE stage = 'ready' AND tenant = ? AND readyQueue = ? AND priority < ?
ORDER BY priority DESC, stageAt, id LIMIT 1
`;
const READY = "SELECT 1 FROM tasks WHERE stage = 'ready' AND tenant = ? AND readyQueue = ? LIMIT ?";

type Overview = Pick<
  Queries,
  | 'countStatus'
  | 'tenants'
  | 'sessions'
  | 'waiters'
  | 'queues'
  | 'runningByAgent'
  | 'paused'
  | 'engines'
  | 'conversations'
>;

/** Queries for operators. */
export function overviewTables(database: Database): Overview {
  return {
    queues: (after, limit) => {
      const queues: Queue[] = [];
      let tenant = after?.tenant ?? nextTenant(database, '');
      while (tenant !== undefined && queues.length < limit) {
        const isNext = ({ agent }: Queue): boolean => tenant !== after?.tenant || agent > after!.agent;
        queues.push(...readQueues(database, tenant).filter(isNext));
        tenant = nextTenant(database, tenant);
      }
      return queues.slice(0, limit);
    },
    runningByAgent: () => {
      const rows = database.all("SELECT agent, count(*) AS number FROM tasks WHERE stage = 'held' GROUP BY agent");
      return Object.fromEntries(rows.map((row) => [row['agent'] as string, Number(row['number'])]));
    },
    paused: (limit) =>
      database.all('SELECT target FROM paused ORDER BY target LIMIT ?', [limit]).map((row) => {
        return JSON.parse(row['target'] as string) as PauseTarget;
      }),
    engines: () => {
      const rows = database.all('SELECT agent, engine FROM engines ORDER BY agent');
      return Object.fromEntries(rows.map((row) => [String(row['agent']), String(row['engine'])]));
    },
    conversations: ({ tenant, after, limit }) =>
      database
        .all(
          'SELECT conversation FROM conversations WHERE tenant = ? AND conversation > ? ORDER BY conversation LIMIT ?',
          [tenant, after, limit],
        )
        .map((row) => row['conversation'] as string),
    countStatus: ({ tenant, status, endedAt }, limit) => {
      const sql = `SELECT count(*) AS number FROM
        (SELECT 1 FROM tasks WHERE tenant = ? AND status = ? AND (endedAt IS NULL OR endedAt > ?) LIMIT ?)`;
      return Number(database.get(sql, [tenant, status, endedAt, limit])?.['number']);
    },
    tenants: (after, limit) => database.all(TENANTS, [after, limit]).map((row) => row['tenant'] as string),
    sessions: (limit) =>
      database
        .all('SELECT record FROM worker_sessions WHERE expiresAt IS NOT NULL ORDER BY expiresAt LIMIT ?', [limit])
        .map((row) => parseRecord<Session>(row)!),
    waiters: (since, limit) =>
      database.all(WAITERS, [since, limit]).map((row) => ({
        worker: row['worker'] as string,
        agents: JSON.parse(row['agents'] as string) as string[],
      })),
  };
}

function nextTenant(database: Database, tenant: string): string | undefined {
  const sql = "SELECT tenant FROM tasks WHERE stage = 'ready' AND tenant > ? ORDER BY tenant LIMIT 1";
  return database.get(sql, [tenant])?.['tenant'] as string | undefined;
}

/** Returns a tenant's queues in the order of their agents. An agent has up to three ready queues. */
function readQueues(database: Database, tenant: string): Queue[] {
  const queues = new Map<string, Queue>();
  for (let readyQueue: ReadyQueue = { tenant, agent: '' }; ; ) {
    const row = database.get(NEXT_READY_QUEUE, [tenant, readyQueue.agent]);
    if (row?.['tenant'] !== tenant) break;
    readyQueue = { tenant, agent: row['readyQueue'] as string };
    const sql = `SELECT count(*) AS number FROM (${READY})`;
    const ready = Number(database.get(sql, [tenant, readyQueue.agent, DEFAULTS.maxCounted])?.['number']);
    const agent = toAgent(readyQueue.agent);
    const known = queues.get(agent) ?? { agent, tenant, ready: 0, oldestReadyAt: Infinity };
    const oldestReadyAt = Math.min(known.oldestReadyAt, readOldest(database, readyQueue));
    queues.set(agent, { ...known, ready: known.ready + ready, oldestReadyAt });
  }
  return [...queues.values()].toSorted((a, b) => (a.agent < b.agent ? -1 : 1));
}

/** Within a priority the index is in order of time. */
function readOldest(database: Database, { tenant, agent }: ReadyQueue): number {
  let oldest = Infinity;
  for (let below: number | undefined = Infinity; below !== undefined; ) {
    const row = database.get(FIRST_OF_PRIORITY, [tenant, agent, below]);
    if (row !== undefined) oldest = Math.min(oldest, row['stageAt'] as number);
    below = row?.['priority'] as number | undefined;
  }
  return oldest;
}
