import type { Json } from '@whoa/core';
import { shardOf } from '../../id.ts';
import type { Line, Queries, Tables } from '../../moves/tables.ts';
import { type Hint, NONCES_MAX } from '../../store.ts';
import type { TaskRecord } from '../../task.ts';
import type { Database, Row, Value } from './database.ts';
import { journalTables } from './journal.ts';

/** How many expired things are looked for each time a task is created. */
const FORGET_MAX = 10;
/** How many changes are kept for processes that are slow to hear of them; older ones make them look at everything. */
export const CHANGES_MAX = 10_000;
const CHANGES_PIECE = 1_000;

const INSERT_TASK = `
INSERT INTO tasks (id, shard, tenant, conversation, status, createdAt, dueAt, endedAt, record)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, createdAt = excluded.createdAt, dueAt = excluded.dueAt,
  endedAt = excluded.endedAt, record = excluded.record
`;

const ADD_HISTORY = `
INSERT INTO history (tenant, conversation, position, message) VALUES (?, ?,
  (SELECT coalesce(max(position), 0) + 1 FROM history WHERE tenant = ? AND conversation = ?), ?)
`;

/** These stand in indexes. */
const COLUMNS = ['status', 'createdAt', 'dueAt', 'endedAt'] as const;

/** The moves' tables in one transaction on a database. Every statement finds its rows through an index. */
export function createTables(database: Database, onHint: (hint: string, number: number) => void): Tables & Queries {
  /** The rows as this transaction knows them: nobody else can change them before it ends. */
  const known = new Map<string, TaskRecord>();
  return {
    task(id) {
      const task = recordOf<TaskRecord>(database.get('SELECT record FROM tasks WHERE id = ?', [id]));
      if (task !== undefined) known.set(id, task);
      return task;
    },
    saveTask(task) {
      const { id } = task;
      const before = known.get(id);
      if (before === undefined) insertTask(database, task);
      else updateTask(database, task, before);
      known.set(id, task);
    },
    clear: (id) => clear(database, id),
    sent: (id, nonce) =>
      database.get('SELECT number FROM sent WHERE id = ? AND nonce = ?', [id, nonce])?.['number'] as number | undefined,
    saveSent(id, { nonce, number }) {
      database.run('INSERT INTO sent (id, nonce, number) VALUES (?, ?, ?)', [id, nonce, number]);
      database.run('DELETE FROM sent WHERE id = ? AND number <= ?', [id, number - NONCES_MAX]);
    },
    conversation: ({ tenant, conversation }) =>
      recordOf<Line>(
        database.get('SELECT record FROM conversations WHERE tenant = ? AND conversation = ?', [tenant, conversation]),
      ),
    saveConversation(line) {
      const isIdle = line.current === undefined && line.gathering === undefined;
      database.run(
        'INSERT OR REPLACE INTO conversations (tenant, conversation, idleSince, record) VALUES (?, ?, ?, ?)',
        [line.tenant, line.conversation, isIdle ? line.changedAt : null, JSON.stringify(line)],
      );
    },
    ...journalTables(database),
    ...historyTables(database),
    tell(hint) {
      const text = JSON.stringify(hint);
      onHint(text, database.run('INSERT INTO changes (hint) VALUES (?)', [text]));
    },
    list: (filter) => list(database, filter),
    due: ({ now, limit, shard }) => {
      const [where, values] = shard === undefined ? ['', []] : ['shard = ? AND ', [shard]];
      const sql = `SELECT id FROM tasks WHERE ${where}dueAt <= ? ORDER BY dueAt LIMIT ?`;
      return database.all(sql, [...values, now, limit]).map((row) => row['id'] as string);
    },
    forget: (before) => forget(database, before),
  };
}

function historyTables(database: Database): Pick<Tables, 'history' | 'addHistory' | 'clearHistory'> {
  return {
    history: ({ tenant, conversation }) =>
      database
        .all('SELECT message FROM history WHERE tenant = ? AND conversation = ? ORDER BY position', [
          tenant,
          conversation,
        ])
        .map((row) => JSON.parse(row['message'] as string) as Json),
    addHistory({ tenant, conversation }, said) {
      for (const message of said)
        database.run(ADD_HISTORY, [tenant, conversation, tenant, conversation, JSON.stringify(message)]);
    },
    clearHistory: ({ tenant, conversation }) =>
      void database.run('DELETE FROM history WHERE tenant = ? AND conversation = ?', [tenant, conversation]),
  };
}

function insertTask(database: Database, task: TaskRecord): void {
  const { id, tenant, conversation = null, status, createdAt, dueAt = null, endedAt = null } = task;
  const record = JSON.stringify(task);
  database.run(INSERT_TASK, [id, shardOf(id), tenant, conversation, status, createdAt, dueAt, endedAt, record]);
}

/** Touches only the columns that change: each stands in indexes, and every index that is written makes a commit longer. */
function updateTask(database: Database, task: TaskRecord, before: TaskRecord): void {
  const changed = COLUMNS.filter((column) => task[column] !== before[column]);
  const values = changed.map((column) => task[column] ?? null);
  const set = changed.map((column) => `${column} = ?, `).join('');
  database.run(`UPDATE tasks SET ${set}record = ? WHERE id = ?`, [...values, JSON.stringify(task), task.id]);
}

function list(database: Database, filter: Parameters<Queries['list']>[0]): TaskRecord[] {
  const { tenant, status, conversation, limit, cursor } = filter;
  const conditions = ['tenant = ?'];
  const values: Value[] = [tenant];
  const narrow = (condition: string, ...more: Value[]): void => {
    conditions.push(condition);
    values.push(...more);
  };
  if (status !== undefined) narrow('status = ?', status);
  if (conversation !== undefined) narrow('conversation = ?', conversation);
  if (cursor !== undefined) {
    const slash = cursor.indexOf('/');
    narrow('(createdAt, id) < (?, ?)', Number(cursor.slice(0, slash)), cursor.slice(slash + 1));
  }
  const where = conditions.join(' AND ');
  const sql = `SELECT record FROM tasks WHERE ${where} ORDER BY createdAt DESC, id DESC LIMIT ?`;
  return database.all(sql, [...values, limit]).map((row) => recordOf<TaskRecord>(row)!);
}

function clear(database: Database, id: string): void {
  database.run('DELETE FROM journal WHERE id = ?', [id]);
  database.run('DELETE FROM sent WHERE id = ?', [id]);
}

function forget(database: Database, before: { endedAt: number; changedAt: number }): void {
  const ended = database.all('SELECT id FROM tasks WHERE endedAt <= ? LIMIT ?', [before.endedAt, FORGET_MAX]);
  for (const { id } of ended as { id: string }[]) {
    database.run('DELETE FROM tasks WHERE id = ?', [id]);
    clear(database, id);
  }
  const idle = 'SELECT tenant, conversation FROM conversations WHERE idleSince <= ? LIMIT ?';
  for (const row of database.all(idle, [before.changedAt, FORGET_MAX])) {
    const place = [row['tenant'] as string, row['conversation'] as string];
    for (const table of ['conversations', 'history']) {
      database.run(`DELETE FROM ${table} WHERE tenant = ? AND conversation = ?`, place);
    }
  }
}

/** Changes after a number, oldest first, and whether some in between are gone. */
export function changesAfter(
  database: Database,
  number: number,
): {
  hints: Hint[];
  last: number;
  missed: boolean;
  more: boolean;
} {
  const rows = database.all('SELECT number, hint FROM changes WHERE number > ? ORDER BY number LIMIT ?', [
    number,
    CHANGES_PIECE,
  ]);
  const changes = rows as { number: number; hint: string }[];
  const more = changes.length === CHANGES_PIECE;
  const last = changes.at(-1)?.number ?? number;
  if (last - number > changes.length) return { hints: [], last, missed: true, more };
  return { hints: changes.map(({ hint }) => JSON.parse(hint) as Hint), last, missed: false, more };
}

export function lastChange(database: Database): number {
  return Number(database.get('SELECT max(number) AS last FROM changes')?.['last'] ?? 0);
}

function recordOf<T>(row: Row | undefined): T | undefined {
  return row === undefined ? undefined : (JSON.parse(row['record'] as string) as T);
}
