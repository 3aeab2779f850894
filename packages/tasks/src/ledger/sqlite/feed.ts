import type { FeedEvent } from '../../feed/feed.ts';
import type { Cursor, FeedTables } from '../operations/tables.ts';
import { type Database, parseRecord } from './database.ts';

const SAVE = 'INSERT OR REPLACE INTO cursors (consumer, record) VALUES (?, ?)';
const ADD = `
INSERT INTO totals (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value
`;

/** The feed in a database. One process writes at a time, so the order of numbers is that of commits. */
export function feedTables(database: Database): FeedTables {
  return {
    addEvent(event) {
      const { tenant, conversation = null } = event;
      const row = [tenant, conversation, JSON.stringify(event)];
      database.run('INSERT INTO feed (tenant, conversation, record) VALUES (?, ?, ?)', row);
    },
    lastEvent: () => Number(database.get("SELECT seq FROM sqlite_sequence WHERE name = 'feed'")?.['seq'] ?? 0),
    events: (after, limit) =>
      database
        .all('SELECT number, record FROM feed WHERE number > ? ORDER BY number LIMIT ?', [after, limit])
        .map((row) => ({ number: Number(row['number']), event: parseRecord<FeedEvent>(row)! })),
    removeEvents: (upTo) => void database.run('DELETE FROM feed WHERE number <= ?', [upTo]),
    forgetEvents({ tenant, conversation = null }) {
      const values = [tenant, conversation, conversation];
      database.run('DELETE FROM feed WHERE number > 0 AND tenant = ? AND (? IS NULL OR conversation = ?)', values);
    },
    cursors: () => database.all('SELECT record FROM cursors ORDER BY consumer').map((row) => parseRecord<Cursor>(row)!),
    saveCursor: (cursor) => void database.run(SAVE, [cursor.consumer, JSON.stringify(cursor)]),
    removeCursor: (consumer) => void database.run('DELETE FROM cursors WHERE consumer = ?', [consumer]),
    addTotal: (name, value) => void database.run(ADD, [name, value]),
    totals() {
      const rows = database.all('SELECT name, value FROM totals');
      return Object.fromEntries(rows.map((row) => [String(row['name']), Number(row['value'])]));
    },
  };
}
