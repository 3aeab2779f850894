// The chats of travellers, as their pages show them, and which reply is being written.
import { db } from './db.ts';
import type { TripMessage } from './messages.ts';

export interface Chat {
  readonly messages: TripMessage[];
  readonly activeStreamId: string | null;
}

export function readChat(owner: string, id: string): Chat {
  const row = db.prepare('SELECT messages, stream FROM chats WHERE owner = ? AND id = ?').get(owner, id);
  const messages = JSON.parse(String(row?.['messages'] ?? '[]')) as TripMessage[];
  return { messages, activeStreamId: (row?.['stream'] ?? null) as string | null };
}

export function saveChat(owner: string, id: string, changed: Partial<Chat>): void {
  const { messages, activeStreamId } = { ...readChat(owner, id), ...changed };
  db.prepare(
    `INSERT INTO chats VALUES (?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET messages = excluded.messages, stream = excluded.stream`,
  ).run(owner, id, JSON.stringify(messages), activeStreamId);
}
