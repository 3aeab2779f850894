import type { Json } from '@whoa/core';
import type { Hint } from '../../store.ts';
import type { ConversationRef } from '../../task.ts';
import type { Conversation, Queries, StoredTask, Tables } from '../operations/tables.ts';
import { toReadyQueue } from '../operations/views.ts';
import { findBackgroundOwner } from '../rules/background.ts';
import { LIMITS } from '../rules/rules.ts';
import { type Database, parseRecord, type Value } from './database.ts';
import { deliveryTables, purgeSessions } from './delivery.ts';
import { feedTables } from './feed.ts';
import { journalTables } from './journal.ts';
import { overviewTables } from './overview.ts';
import { questionTables } from './questions.ts';

const INSERT_TASK = `
INSERT OR REPLACE INTO tasks (id, tenant, conversation, status, createdAt, endedAt, stage, readyQueue, priority, stageAt, session, hasPendingOrders,
  agent, deadline, record) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
`;

const ADD_HISTORY = `
INSERT INTO history (tenant, conversation, position, message) VALUES (?, ?,
  (SELECT coalesce(max(position), 0) + 1 FROM history WHERE tenant = ? AND conversation = ?), ?)
`;

const FIND_NONCE = 'SELECT number FROM command_nonces WHERE id = ? AND nonce = ?';
const ADD_INPUT = `
INSERT INTO inputs (owner, position, input) VALUES (?,
  (SELECT coalesce(max(position), 0) + 1 FROM inputs WHERE owner = ?), ?)
`;

const MOVE_INPUTS = `
UPDATE inputs SET owner = ?, position = position + (SELECT coalesce(max(position), 0) FROM inputs WHERE owner = ?)
WHERE owner = ?
`;

/** The tables of the operations in a database, for one transaction after another. */
export interface SqliteTables extends Tables, Queries {
  /** Forgets the cache of the last transaction. Returns the object that collects the hints of this one. */
  begin(): readonly Hint[];
}

/** Every statement finds its rows through an index. */
export function createTables(database: Database, readers: Tables['readers']): SqliteTables {
  /** The rows that this transaction has read: no other transaction can change them before it ends. */
  const known = new Map<string, StoredTask>();
  let written: Hint[] = [];
  const note = (task: StoredTask): StoredTask => {
    known.set(task.id, task);
    return task;
  };
  const find = (id: string): StoredTask | undefined => {
    const task = parseRecord<StoredTask>(database.get('SELECT record FROM tasks WHERE id = ?', [id]));
    return task && note(task);
  };
  return {
    begin() {
      known.clear();
      written = [];
      return written;
    },
    task: find,
    saveTask(task) {
      const before = known.get(task.id);
      if (before === undefined) insertTask(database, task);
      else updateTask(database, task, before);
      note(task);
    },
    addInput: (owner, input) => void database.run(ADD_INPUT, [owner, owner, JSON.stringify(input)]),
    inputs: (owner) =>
      database
        .all('SELECT input FROM inputs WHERE owner = ? ORDER BY position', [owner])
        .map((row) => JSON.parse(row['input'] as string) as Json),
    inputsCount: (owner) =>
      Number(database.get('SELECT count(*) AS number FROM inputs WHERE owner = ?', [owner])?.['number']),
    moveInputs: (from, to) => void database.run(MOVE_INPUTS, [to, to, from]),
    clear: (id) => clear(database, id, id),
    removeTask: (task) => removeTask(database, task),
    findCommandNumber: (id, nonce) => database.get(FIND_NONCE, [id, nonce])?.['number'] as number | undefined,
    saveCommandNonce(id, { nonce, number }) {
      database.run('INSERT INTO command_nonces (id, nonce, number) VALUES (?, ?, ?)', [id, nonce, number]);
      database.run('DELETE FROM command_nonces WHERE id = ? AND number <= ?', [id, number - LIMITS.maxNonces]);
    },
    conversation: ({ tenant, conversation }) =>
      parseRecord<Conversation>(
        database.get('SELECT record FROM conversations WHERE tenant = ? AND conversation = ?', [tenant, conversation]),
      ),
    saveConversation(conversation) {
      const isIdle = conversation.current === undefined && conversation.debouncing === undefined;
      database.run(
        'INSERT OR REPLACE INTO conversations (tenant, conversation, idleSince, record) VALUES (?, ?, ?, ?)',
        [
          conversation.tenant,
          conversation.conversation,
          isIdle ? conversation.changedAt : null,
          JSON.stringify(conversation),
        ],
      );
    },
    ...deliveryTables(database, note),
    ...questionTables(database, find),
    ...journalTables(database),
    ...feedTables(database),
    ...historyTables(database),
    notify: (hint) => void written.push(hint),
    readers,
    ...overviewTables(database),
    list: (filter) => list(database, filter),
    purge: (before, limit) => purge(database, before, limit),
  };
}

function historyTables(
  database: Database,
): Pick<Tables, 'history' | 'addHistory' | 'clearHistory' | 'removeConversation'> {
  return {
    removeConversation: (ref) => removeConversation(database, ref),
    history: ({ tenant, conversation }) =>
      database
        .all('SELECT message FROM history WHERE tenant = ? AND conversation = ? ORDER BY position', [
          tenant,
          conversation,
        ])
        .map((row) => JSON.parse(row['message'] as string) as Json),
    addHistory({ tenant, conversation }, said) {
      for (const message of said) database.run(ADD_HISTORY, [tenant, conversation, tenant, conversation, message]);
    },
    clearHistory: ({ tenant, conversation }) =>
      void database.run('DELETE FROM history WHERE tenant = ? AND conversation = ?', [tenant, conversation]),
  };
}

function insertTask(database: Database, task: StoredTask): void {
  const { id, tenant, createdAt, agent, deadline = null } = task;
  const conversation = task.conversation ?? behind(findBackgroundOwner(task)) ?? null;
  const { status, endedAt, stage, readyQueue, priority, stageAt, session, hasPendingOrders } = toColumns(task);
  const found = [stage, readyQueue, priority, stageAt, session, hasPendingOrders, agent, deadline];
  database.run(INSERT_TASK, [id, tenant, conversation, status, createdAt, endedAt, ...found, JSON.stringify(task)]);
}

const COLUMNS = [
  'status',
  'endedAt',
  'stage',
  'readyQueue',
  'priority',
  'stageAt',
  'session',
  'hasPendingOrders',
  'offeredAt',
] as const;
type Column = (typeof COLUMNS)[number];

/** The indexed columns. */
function toColumns(task: StoredTask): Record<Column, Value> {
  const {
    status,
    endedAt = null,
    stage = null,
    stageAt = null,
    session = null,
    hasPendingOrders = false,
    priority,
  } = task;
  const readyQueue = stage === 'ready' ? toReadyQueue(task).agent : null;
  const isHeld = stage === 'held';
  return {
    status,
    endedAt,
    stage,
    readyQueue,
    priority,
    stageAt,
    session: isHeld ? session : null,
    offeredAt: task.offeredAt ?? null,
    hasPendingOrders: isHeld ? Number(hasPendingOrders) : null,
  };
}

/** Updates only the columns that change: they are indexed, and every index that is written makes a commit slower. */
function updateTask(database: Database, task: StoredTask, before: StoredTask): void {
  const [old, now] = [toColumns(before), toColumns(task)];
  const changed = COLUMNS.filter((column) => now[column] !== old[column]);
  const values = changed.map((column) => now[column]);
  const set = changed.map((column) => `${column} = ?, `).join('');
  database.run(`UPDATE tasks SET ${set}record = ? WHERE id = ?`, [...values, JSON.stringify(task), task.id]);
}

function list(database: Database, filter: Parameters<Queries['list']>[0]): StoredTask[] {
  const { tenant, status, conversation = behind(filter.backgroundOf), limit, after } = filter;
  const conditions = ['tenant = ?'];
  const values: Value[] = [tenant];
  const narrow = (condition: string, ...more: Value[]): void => {
    conditions.push(condition);
    values.push(...more);
  };
  if (status !== undefined) narrow('status = ?', status);
  if (conversation !== undefined) narrow('conversation = ?', conversation);
  if (after !== undefined) narrow('(createdAt, id) < (?, ?)', after.createdAt, after.id);
  const where = conditions.join(' AND ');
  const sql = `SELECT record FROM tasks WHERE ${where} ORDER BY createdAt DESC, id DESC LIMIT ?`;
  return database.all(sql, [...values, limit]).map((row) => parseRecord<StoredTask>(row)!);
}

/** What the column has instead of a conversation for its background tasks, which are not in it. */
function behind(conversation: string | undefined): string | undefined {
  return conversation === undefined ? undefined : `\0${conversation}`;
}

function clear(database: Database, id: string, inputOwner: string): void {
  for (const table of ['journal', 'command_nonces']) database.run(`DELETE FROM ${table} WHERE id = ?`, [id]);
  database.run('DELETE FROM questions WHERE task = ?', [id]);
  database.run('DELETE FROM inputs WHERE owner = ?', [inputOwner]);
}

function removeTask(database: Database, { id, inputOwner }: StoredTask): void {
  database.run('DELETE FROM tasks WHERE id = ?', [id]);
  clear(database, id, inputOwner);
}

function removeConversation(database: Database, { tenant, conversation }: ConversationRef): void {
  for (const table of ['conversations', 'history']) {
    database.run(`DELETE FROM ${table} WHERE tenant = ? AND conversation = ?`, [tenant, conversation]);
  }
}

function purge(database: Database, before: Parameters<Queries['purge']>[0], limit: number): boolean {
  const ended = database.all('SELECT record FROM tasks WHERE endedAt <= ? LIMIT ?', [before.endedAt, limit]);
  for (const row of ended) removeTask(database, parseRecord<StoredTask>(row)!);
  const idle = 'SELECT tenant, conversation FROM conversations WHERE idleSince <= ? LIMIT ?';
  for (const row of database.all(idle, [before.changedAt, limit])) {
    removeConversation(database, row as { tenant: string; conversation: string });
  }
  purgeSessions(database, before);
  return ended.length === limit;
}
