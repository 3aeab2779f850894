// The database of the shop. All instances share it.
import { DatabaseSync } from 'node:sqlite';

export const db = new DatabaseSync(process.env['DATABASE'] ?? 'shop.db', { timeout: 5_000 });

db.exec(`PRAGMA journal_mode = WAL;
  CREATE TABLE IF NOT EXISTS users (name TEXT PRIMARY KEY, password TEXT);
  CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, user TEXT, ends INTEGER);
  CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, owner TEXT, item TEXT, state TEXT);
  CREATE TABLE IF NOT EXISTS log (entry INTEGER PRIMARY KEY, owner TEXT, what TEXT);
  CREATE TABLE IF NOT EXISTS files (id TEXT PRIMARY KEY, owner TEXT, type TEXT, bytes BLOB);
  CREATE TABLE IF NOT EXISTS chats (owner TEXT, id TEXT, version INTEGER, messages TEXT, PRIMARY KEY (owner, id));`);
