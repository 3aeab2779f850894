import type { ListFilter, ListPage } from '../../store.ts';
import type { ConversationRecord, ConversationRef, JournalEntry, TaskRecord, TaskRef } from '../../task.ts';
import type { Database } from './database.ts';
import { type ConversationRow, conversationOf, type ShownTask, taskOf } from './rows.ts';

/** A task past its retention is gone, whether or not it has been swept yet. */
const rememberedFor = (retention: string): string =>
  `(t.ended_at IS NULL OR t.ended_at > (SELECT whoa.now_ms()) - ${retention}::float8)`;

export async function getTask(
  database: Database,
  { tenant, id }: TaskRef,
  retentionMs: number,
): Promise<TaskRecord | undefined> {
  const sql = `SELECT whoa.task_of(t) AS task FROM whoa.tasks t
    WHERE t.id = $1 AND t.tenant = $2 AND ${rememberedFor('$3')}`;
  const [row] = await ask<{ task: ShownTask }>(database, 'get', { sql, values: [id, tenant, retentionMs] });
  return row && taskOf(row.task);
}

export async function listTasks(
  database: Database,
  { tenant, status, conversation, limit, cursor }: ListFilter & { limit: number },
  retentionMs: number,
): Promise<ListPage> {
  const conditions = ['t.tenant = $1', rememberedFor('$2')];
  const values: unknown[] = [tenant, retentionMs, limit + 1];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  if (status !== undefined) conditions.push(`t.status = ${bind(status)}`);
  if (conversation !== undefined) conditions.push(`t.conversation = ${bind(conversation)}`);
  if (cursor !== undefined) {
    const slash = cursor.indexOf('/');
    const [at, id] = [Number(cursor.slice(0, slash)), cursor.slice(slash + 1)];
    conditions.push(`(t.created_at, t.id) < (${bind(at)}, ${bind(id)})`);
  }
  const sql = `SELECT whoa.task_of(t) AS task FROM whoa.tasks t WHERE ${conditions.join(' AND ')}
    ORDER BY t.created_at DESC, t.id DESC LIMIT $3`;
  const found = await ask<{ task: ShownTask }>(database, 'list', { sql, values });
  const tasks = found.slice(0, limit).map(({ task }) => taskOf(task));
  const last = tasks.at(-1);
  return found.length > limit && last ? { tasks, next: `${last.createdAt}/${last.id}` } : { tasks };
}

export function readJournal(
  database: Database,
  { tenant, id, after, limit }: TaskRef & { after: number; limit: number },
  retentionMs: number,
): Promise<readonly JournalEntry[]> {
  const sql = `SELECT j.position, j.epoch, j.at, j.event FROM whoa.journal j WHERE j.task = $1 AND j.position > $2
    AND EXISTS (SELECT FROM whoa.tasks t WHERE t.id = $1 AND t.tenant = $4 AND ${rememberedFor('$5')})
    ORDER BY j.position LIMIT $3`;
  return ask<JournalEntry>(database, 'read', { sql, values: [id, after, limit, tenant, retentionMs] });
}

export async function getConversation(
  database: Database,
  { tenant, conversation }: ConversationRef,
): Promise<ConversationRecord | undefined> {
  const sql = `SELECT c.*, whoa.history_of(c.tenant, c.conversation) AS history FROM whoa.conversations c
    WHERE c.tenant = $1 AND c.conversation = $2`;
  const [row] = await ask<ConversationRow>(database, 'conversation', { sql, values: [tenant, conversation] });
  return row && conversationOf(row);
}

export async function listDue(
  database: Database,
  { limit, shard }: { limit: number; shard: number | undefined },
): Promise<readonly string[]> {
  const [where, values] = shard === undefined ? ['', []] : [' AND d.shard = $2', [shard]];
  const sql = `SELECT d.id FROM whoa.due d WHERE d.due_at <= (SELECT whoa.now_ms())${where} ORDER BY d.due_at LIMIT $1`;
  return (await ask<{ id: string }>(database, 'due', { sql, values: [limit, ...values] })).map(({ id }) => id);
}

function ask<Row extends object>(
  database: Database,
  operation: string,
  question: { sql: string; values: readonly unknown[] },
): Promise<readonly Row[]> {
  return database.ask<Row>({ ...question, operation, changes: false });
}
