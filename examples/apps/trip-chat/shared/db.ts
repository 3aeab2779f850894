// The agency's database: its chats, what was booked, and what is billed.
import { DatabaseSync } from 'node:sqlite';

export const db = new DatabaseSync(process.env['DATABASE'] ?? 'trips.db', { timeout: 5_000 });

db.exec(`PRAGMA journal_mode = WAL;
  CREATE TABLE IF NOT EXISTS chats (owner TEXT, id TEXT, messages TEXT, stream TEXT, PRIMARY KEY (owner, id));
  CREATE TABLE IF NOT EXISTS log (entry INTEGER PRIMARY KEY, owner TEXT, what TEXT);`);

export function note(owner: string, what: string): void {
  db.prepare('INSERT INTO log (owner, what) VALUES (?, ?)').run(owner, what);
}
