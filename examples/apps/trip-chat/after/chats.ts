// The chats of travellers, as their pages show them.
import type { ChatHistory } from '@whoa/server';
import { db } from './db.ts';

export const history: ChatHistory = {
  load({ principal, chatId }) {
    const row = db.prepare('SELECT messages FROM chats WHERE owner = ? AND id = ?').get(principal.name, chatId);
    const version = String(row?.['messages'] ?? '[]');
    return { messages: JSON.parse(version) as [], version };
  },
  save({ principal, chatId, messages, expectedVersion }) {
    const version = JSON.stringify(messages);
    const { changes } = db
      .prepare(
        `INSERT INTO chats VALUES (?, ?, ?, NULL)
         ON CONFLICT DO UPDATE SET messages = excluded.messages, stream = NULL WHERE messages = ?`,
      )
      .run(principal.name, chatId, version, expectedVersion);
    return changes === 1 ? { version } : 'conflict';
  },
};
