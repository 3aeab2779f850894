import type {
  Queries,
  ReadyQueue,
  Session,
  SessionTables,
  StageTables,
  StoredTask,
  StoreState,
  Tables,
} from '../operations/tables.ts';
import { AFTER_RESERVED, LIMITS, OFFERED, OFFERED_SUSPECTS, SETTLE } from '../rules/rules.ts';
import { type Database, parseRecord } from './database.ts';

type Delivery = Omit<StageTables, 'firstExpired'> &
  SessionTables &
  Pick<Tables, 'isPaused' | 'setPaused' | 'engine' | 'setEngine' | 'firstEnded'>;

/** Both name what the index of offers leaves out. */
const OFFERS = `SELECT record FROM tasks WHERE stage = 'ready' AND readyQueue >= '${OFFERED_SUSPECTS}' AND readyQueue < '${AFTER_RESERVED}'`;
const LOST_OFFERS = `
SELECT record FROM (${OFFERS} AND offeredAt IS NULL AND stageAt <= ? ORDER BY stageAt LIMIT ?)
UNION ALL SELECT record FROM (${OFFERS} AND offeredAt <= ? ORDER BY offeredAt LIMIT ?) LIMIT ?
`;

const FIRST_OVERDUE = "SELECT record FROM tasks WHERE status = 'init' AND deadline <= ? ORDER BY deadline, id LIMIT 1";

/** How tasks reach workers, in a database: ready queues, sessions, and waiting workers. */
export function deliveryTables(database: Database, note: (task: StoredTask) => StoredTask): Delivery {
  const task = (row: Record<string, unknown> | undefined): StoredTask | undefined => {
    const found = parseRecord<StoredTask>(row);
    return found && note(found);
  };
  const tasks = (rows: readonly Record<string, unknown>[]): StoredTask[] => rows.map((row) => task(row)!);
  return {
    ...readyQueueTables(database),
    ...sessionTables(database),
    ...waiterTables(database),
    isPaused: (target) => database.get('SELECT 1 FROM paused WHERE target = ?', [JSON.stringify(target)]) !== undefined,
    setPaused: (target, isPaused) => {
      const sql = isPaused ? 'INSERT OR IGNORE INTO paused (target) VALUES (?)' : 'DELETE FROM paused WHERE target = ?';
      database.run(sql, [JSON.stringify(target)]);
    },
    engine: (agent) =>
      database.get('SELECT engine FROM engines WHERE agent = ?', [agent])?.['engine'] as string | undefined,
    setEngine: (agent, engine) => {
      if (engine === undefined) database.run('DELETE FROM engines WHERE agent = ?', [agent]);
      else database.run('INSERT OR REPLACE INTO engines (agent, engine) VALUES (?, ?)', [agent, engine]);
    },
    readyIn: (names, limit) => {
      const sql = "SELECT record FROM tasks WHERE stage = 'ready' AND readyQueue = ? LIMIT ?";
      return names.flatMap((name) => tasks(database.all(sql, [name, limit]))).slice(0, limit);
    },
    lostOffers: ({ readyAt, offeredAt }, limit) =>
      tasks(database.all(LOST_OFFERS, [readyAt, limit, offeredAt, limit, limit])),
    offeredAgain: (of, until, limit) => {
      const [field, name] = 'tenant' in of ? ['tenant', of.tenant] : ['agent', of.agent];
      return tasks(database.all(`${OFFERS} AND offeredAt <= ? AND ${field} = ? LIMIT ?`, [until, name, limit]));
    },
    firstReady: ({ agent, tenant }) =>
      task(
        database.get(
          `SELECT record FROM tasks WHERE tenant = ? AND readyQueue = ? AND stage = 'ready'
           ORDER BY priority DESC, stageAt, id LIMIT 1`,
          [tenant, agent],
        ),
      ),
    due: (now, limit) =>
      tasks(
        database.all("SELECT record FROM tasks WHERE stage = 'delayed' AND stageAt <= ? ORDER BY stageAt, id LIMIT ?", [
          now,
          limit,
        ]),
      ),
    firstOverdue: (now) => task(database.get(FIRST_OVERDUE, [now])),
    heldBy: (session, limit) =>
      tasks(
        database.all("SELECT record FROM tasks WHERE session = ? AND stage = 'held' LIMIT ?", [session, most(limit)]),
      ),
    withPendingOrders: (session, limit) =>
      tasks(
        database.all("SELECT record FROM tasks WHERE session = ? AND hasPendingOrders = 1 AND stage = 'held' LIMIT ?", [
          session,
          limit,
        ]),
      ),
  };
}

type ReadyQueues = Omit<
  StageTables,
  | 'firstReady'
  | 'readyIn'
  | 'lostOffers'
  | 'offeredAgain'
  | 'firstOverdue'
  | 'firstExpired'
  | 'due'
  | 'heldBy'
  | 'withPendingOrders'
  | keyof ReturnType<typeof waiterTables>
>;

function readyQueueTables(database: Database): ReadyQueues & Pick<Tables, 'firstEnded'> {
  const count = (from: string, values: readonly string[], limit = Infinity): number => {
    const sql = `SELECT count(*) AS number FROM (SELECT 1 FROM tasks WHERE ${from} LIMIT ?)`;
    return Number(database.get(sql, [...values, most(limit)])?.['number']);
  };
  const nextTick = (): number => database.nextTick();
  return {
    openReadyQueue: ({ agent, tenant }) => {
      const sql = 'INSERT OR IGNORE INTO ready_queues (agent, tenant, tick) VALUES (?, ?, ?)';
      if (!isOpen(database, { agent, tenant })) database.run(sql, [agent, tenant, nextTick()]);
    },
    closeReadyQueue: ({ agent, tenant }) =>
      void database.run('DELETE FROM ready_queues WHERE agent = ? AND tenant = ?', [agent, tenant]),
    hasReservedQueues: () => {
      const sql = 'SELECT 1 FROM ready_queues WHERE agent > ? AND agent < ? LIMIT 1';
      return database.get(sql, [SETTLE, OFFERED]) !== undefined;
    },
    firstReadyQueue: (agents) => {
      const readyQueues = agents.flatMap(
        (agent) => database.get('SELECT * FROM ready_queues WHERE agent = ? ORDER BY tick LIMIT 1', [agent]) ?? [],
      ) as unknown as (ReadyQueue & { tick: number })[];
      const first = readyQueues.toSorted((a, b) => a.tick - b.tick)[0];
      return first && { agent: first.agent, tenant: first.tenant };
    },
    rotateReadyQueue: ({ agent, tenant }) =>
      void database.run('UPDATE ready_queues SET tick = ? WHERE agent = ? AND tenant = ?', [nextTick(), agent, tenant]),
    countReady: ({ agent, tenant }, limit) =>
      limit > MAX_COUNTED ? 0 : count("tenant = ? AND readyQueue = ? AND stage = 'ready'", [tenant, agent], limit),
    readyQueueNames: (tenant) =>
      database
        .all("SELECT DISTINCT readyQueue FROM tasks WHERE tenant = ? AND stage = 'ready'", [tenant])
        .map((row) => row['readyQueue'] as string)
        .filter((readyQueue) => readyQueue !== SETTLE),
    countHeld: (of, limit) =>
      'tenant' in of
        ? count("tenant = ? AND stage = 'held'", [of.tenant], limit)
        : count("agent = ? AND stage = 'held'", [of.agent], limit),
    countHeldBy: (session) => count("session = ? AND stage = 'held'", [session]),
    nextDelayedAt: () => {
      const sql = "SELECT stageAt FROM tasks WHERE stage = 'delayed' ORDER BY stageAt LIMIT 1";
      return database.get(sql)?.['stageAt'] as number | undefined;
    },
    firstEnded: () => {
      const sql = 'SELECT endedAt FROM tasks WHERE endedAt IS NOT NULL ORDER BY endedAt LIMIT 1';
      return database.get(sql)?.['endedAt'] as number | undefined;
    },
  };
}

/** Ready tasks are counted for each new task. Above this, a limit is not checked, because counting takes too long. */
const MAX_COUNTED = 100_000;

function isOpen(database: Database, { agent, tenant }: ReadyQueue): boolean {
  return database.get('SELECT 1 FROM ready_queues WHERE agent = ? AND tenant = ?', [agent, tenant]) !== undefined;
}

function sessionTables(database: Database): SessionTables {
  return {
    session: (id) => parseRecord<Session>(database.get('SELECT record FROM worker_sessions WHERE id = ?', [id])),
    saveSession: (session) => {
      const { id, expiresAt = null, lastHeldAt } = session;
      const sql = 'INSERT OR REPLACE INTO worker_sessions (id, expiresAt, lastHeldAt, record) VALUES (?, ?, ?, ?)';
      database.run(sql, [id, expiresAt, lastHeldAt, JSON.stringify(session)]);
    },
    firstSession: () => {
      const sql = 'SELECT record FROM worker_sessions WHERE expiresAt IS NOT NULL ORDER BY expiresAt LIMIT 1';
      return parseRecord<Session>(database.get(sql));
    },
    sessionsAfter: (at) =>
      database
        .all('SELECT record FROM worker_sessions WHERE expiresAt > ?', [at])
        .map((row) => parseRecord<Session>(row)!),
    storeState: () => {
      const state = database.get('SELECT state FROM store_state WHERE id = 0')?.['state'] as string | undefined;
      return state === undefined || state === '' ? undefined : (JSON.parse(state) as StoreState);
    },
    saveStoreState: (state) =>
      void database.run('UPDATE store_state SET state = ? WHERE id = 0', [JSON.stringify(state)]),
  };
}

function waiterTables(database: Database): Pick<Tables, 'park' | 'unpark' | 'takeWaiter'> {
  const unpark = (worker: string): void => void database.run('DELETE FROM waiters WHERE worker = ?', [worker]);
  return {
    park(worker, agents, at) {
      const recent = 'SELECT agent FROM waiters WHERE worker = ? AND at > ?';
      const known = database.all(recent, [worker, at - LIMITS.idleWorkerTtlMs / 4]);
      const parked = new Set(known.map((row) => row['agent']));
      if (parked.size === agents.length && agents.every((agent) => parked.has(agent))) return;
      unpark(worker);
      for (const agent of agents) {
        database.run('INSERT OR IGNORE INTO waiters (worker, agent, at) VALUES (?, ?, ?)', [worker, agent, at]);
      }
    },
    unpark,
    takeWaiter(agent, since) {
      database.run('DELETE FROM waiters WHERE agent = ? AND at < ?', [agent, since]);
      const first =
        agent === SETTLE
          ? database.get('SELECT worker FROM waiters WHERE at >= ? LIMIT 1', [since])
          : database.get('SELECT worker FROM waiters WHERE agent = ? ORDER BY at LIMIT 1', [agent]);
      const worker = first?.['worker'] as string | undefined;
      if (worker !== undefined) unpark(worker);
      return worker;
    },
  };
}

/** Removes sessions that are over or hold nothing, a few at a time. */
export function purgeSessions(
  database: Database,
  { lastHeldAt }: Pick<Parameters<Queries['purge']>[0], 'lastHeldAt'>,
): void {
  const sql = `DELETE FROM worker_sessions WHERE id IN
    (SELECT id FROM worker_sessions WHERE expiresAt IS NULL AND lastHeldAt <= ? LIMIT ?)`;
  database.run(sql, [lastHeldAt, LIMITS.maxPurged]);
}

/** SQLite takes -1 for no limit. */
function most(limit: number): number {
  return Number.isFinite(limit) ? limit : -1;
}
