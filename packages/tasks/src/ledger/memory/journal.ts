import type { JournalEntry } from '../../task.ts';
import type { Queries, Tables } from '../operations/tables.ts';

/** The journals of tasks, by id. */
export function journalTables(
  journals: Map<string, JournalEntry[]>,
): Pick<Tables & Queries, 'addEntries' | 'measureEntries' | 'removeEntries' | 'entries'> {
  const find = (id: string): JournalEntry[] => journals.get(id) ?? [];
  return {
    measureEntries: (id, positions) => {
      const wanted = new Set(positions);
      const found = find(id).filter(({ position }) => wanted.has(position));
      return found.reduce((bytes, { event }) => bytes + Buffer.byteLength(JSON.stringify(event)), 0);
    },
    removeEntries: (id, positions) => {
      const removed = new Set(positions);
      const left = find(id).filter(({ position }) => !removed.has(position));
      journals.set(id, left);
    },
    addEntries: (id, entries) => void getList(journals, id).push(...entries),
    entries: (id, { after, limit }) => {
      const journal = find(id);
      // Gaps only move entries towards the start, so the search can begin here.
      let first = Math.min(Math.max(0, after), journal.length);
      while (first > 0 && journal[first - 1]!.position > after) first--;
      return journal.slice(first, first + limit);
    },
  };
}

export function getList<T>(lists: Map<string, T[]>, key: string): T[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}
