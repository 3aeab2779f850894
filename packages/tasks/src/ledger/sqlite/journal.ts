import type { Json } from '@whoa/core';
import type { JournalEntry } from '../../task.ts';
import type { Queries, Tables } from '../operations/tables.ts';
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
      const sql = 'INSERT INTO journal (id, position, epoch, at, event, claimHash, said) VALUES (?, ?, ?, ?, ?, ?, ?)';
      for (const { position, epoch, at, event, claimHash, said } of entries)
        database.run(sql, [id, position, epoch, at, JSON.stringify(event), claimHash, said]);
    },
    entries: (id, { after, limit }) =>
      database
        .all('SELECT * FROM journal WHERE id = ? AND position > ? ORDER BY position LIMIT ?', [id, after, limit])
        .map(toEntry),
  };
}

function toEntry(row: Row): JournalEntry {
  const { id: _id, event, ...rest } = row as unknown as Omit<JournalEntry, 'event'> & { id: string; event: string };
  return { ...rest, event: JSON.parse(event) as Json };
}
