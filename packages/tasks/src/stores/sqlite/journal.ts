import type { Json } from '@whoa/core';
import type { Queries, Tables } from '../../operations/tables.ts';
import type { JournalEntry } from '../../task.ts';
import type { Database, Row } from './database.ts';

/** The journals of tasks in a database. */
export function journalTables(
  database: Database,
): Pick<Tables & Queries, 'addEntries' | 'measureEntries' | 'removeEntries' | 'entries'> {
  return {
    measureEntries: (id, positions) =>
      positions.reduce((bytes, position) => {
        const sql = 'SELECT length(CAST(event AS BLOB)) AS bytes FROM journal WHERE id = ? AND position = ?';
        return bytes + Number(database.get(sql, [id, position])?.['bytes'] ?? 0);
      }, 0),
    removeEntries(id, positions) {
      for (const position of positions) {
        database.run('DELETE FROM journal WHERE id = ? AND position = ?', [id, position]);
      }
    },
    addEntries(id, entries) {
      for (const { position, epoch, at, event } of entries) {
        database.run('INSERT INTO journal (id, position, epoch, at, event) VALUES (?, ?, ?, ?, ?)', [
          id,
          position,
          epoch,
          at,
          JSON.stringify(event),
        ]);
      }
    },
    entries: (id, { after, limit }) =>
      database
        .all('SELECT * FROM journal WHERE id = ? AND position > ? ORDER BY position LIMIT ?', [id, after, limit])
        .map(toEntry),
  };
}

function toEntry(row: Row): JournalEntry {
  const { position, epoch, at, event } = row as { position: number; epoch: number; at: number; event: string };
  return { position, epoch, at, event: JSON.parse(event) as Json };
}
