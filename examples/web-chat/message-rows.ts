import { DatabaseSync } from 'node:sqlite';
import type { ChatHistory } from '@whoa/server';
import type { UIMessage } from 'ai';

/** One row for each message. Users choose the ids of chats and messages, so the key has the owner and the chat too. */
export function openRows(file: string): ChatHistory {
  const db = new DatabaseSync(file, { timeout: 5_000 });
  db.exec(`
    CREATE TABLE IF NOT EXISTS chat (owner TEXT, id TEXT, version INTEGER, PRIMARY KEY (owner, id));
    CREATE TABLE IF NOT EXISTS message
      (owner TEXT, chat TEXT, id TEXT, position INTEGER, role TEXT, body TEXT, PRIMARY KEY (owner, chat, id));`);
  const find = db.prepare('SELECT version FROM chat WHERE owner = ? AND id = ?');
  const list = db.prepare('SELECT body FROM message WHERE owner = ? AND chat = ? ORDER BY position');
  const remove = db.prepare('DELETE FROM message WHERE owner = ? AND chat = ? AND id = ?');
  const raise = db.prepare('INSERT INTO chat VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET version = excluded.version');
  const put = db.prepare(`INSERT INTO message VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET position = excluded.position, body = excluded.body WHERE role = excluded.role`);
  const readVersion = (owner: string, chat: string): number => Number(find.get(owner, chat)?.['version'] ?? 0);
  return {
    load({ chatId, principal: { tenant } }) {
      const rows = list.all(tenant, chatId);
      return {
        messages: rows.map(({ body }) => JSON.parse(String(body)) as UIMessage),
        version: readVersion(tenant, chatId),
      };
    },
    save({ chatId, principal: { tenant }, messages, removedIds, expectedVersion }) {
      db.exec('BEGIN IMMEDIATE');
      try {
        if (readVersion(tenant, chatId) !== expectedVersion) return 'conflict';
        for (const id of removedIds) remove.run(tenant, chatId, id);
        for (const [position, message] of messages.entries())
          put.run(tenant, chatId, message.id, position, message.role, JSON.stringify(message));
        const version = Number(expectedVersion) + 1;
        raise.run(tenant, chatId, version);
        return { version };
      } finally {
        db.exec('COMMIT');
      }
    },
  };
}
