import { DatabaseSync } from 'node:sqlite';
import type { ChatHistory } from '@whoa/server';

const db = new DatabaseSync(process.env['DATABASE'] ?? 'app.db', { timeout: 5_000 });
db.exec('CREATE TABLE IF NOT EXISTS chats (owner, id, version, messages, PRIMARY KEY (owner, id))');
const find = db.prepare('SELECT version, messages FROM chats WHERE owner = ? AND id = ?');
const put = db.prepare(`INSERT INTO chats VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE
  SET version = excluded.version, messages = excluded.messages WHERE version = ?`);

export const history: ChatHistory = {
  load({ chatId, principal }) {
    const row = find.get(principal.tenant, chatId);
    const messages = JSON.parse(String(row?.['messages'] ?? '[]')) as [];
    return { messages, version: Number(row?.['version'] ?? 0) };
  },
  save({ chatId, principal, messages, expectedVersion }) {
    const version = Number(expectedVersion) + 1;
    const { changes } = put.run(principal.tenant, chatId, version, JSON.stringify(messages), expectedVersion);
    return changes === 1 ? { version } : 'conflict';
  },
};
