// The chats of users, as their pages show them. Tabs and instances may write at the same time, so each save names the
// version it changes.
import type { UIMessage } from 'ai';
import type { ShopMessage } from './assistant';
import { db } from './db';

export function loadChat(user: string, id: string): { messages: ShopMessage[]; version: number } {
  const row = db.prepare('SELECT messages, version FROM chats WHERE owner = ? AND id = ?').get(user, id);
  const messages = JSON.parse(String(row?.['messages'] ?? '[]')) as ShopMessage[];
  return { messages, version: Number(row?.['version'] ?? 0) };
}

/** Saves a chat, and returns its new version, or `undefined` if it has changed since it was loaded. */
export function saveChat(user: string, id: string, changed: { messages: readonly UIMessage[]; version: number }) {
  const version = changed.version + 1;
  const { changes } = db
    .prepare(
      `INSERT INTO chats VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE
       SET version = excluded.version, messages = excluded.messages WHERE version = ?`,
    )
    .run(user, id, version, JSON.stringify(changed.messages), changed.version);
  return changes === 1 ? version : undefined;
}

export function listChats(user: string): { id: string; title: string }[] {
  const title = `json_extract(messages, '$[0].parts[0].text')`;
  const rows = db.prepare(`SELECT id, ${title} AS title FROM chats WHERE owner = ? ORDER BY rowid DESC`).all(user);
  return rows.map((row) => ({ id: String(row['id']), title: String(row['title'] ?? 'Chat') }));
}
