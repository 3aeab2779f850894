import { type SessionRecord, type SessionStore, toPage, toSummary } from './store.ts';

/** Keeps sessions in memory until the process ends. */
export function createMemorySessions(): SessionStore {
  const records = new Map<string, SessionRecord>();
  return {
    load: (id) => Promise.resolve(records.get(id)),
    save(record) {
      records.set(record.id, structuredClone(record));
      return Promise.resolve();
    },
    list: async (filter = {}) => toPage(await Promise.resolve([...records.values()].map(toSummary)), filter),
    remove(id) {
      records.delete(id);
      return Promise.resolve();
    },
  };
}
