import { type Entries, type Entry, KEPT_MS } from './entries.ts';

/** Entries in this process. */
export function createMemoryEntries(now: () => number): Entries {
  const entries = new Map<string, Entry & { readonly expiresAt: number }>();
  const find = (taskId: string): Entry | undefined => {
    // The oldest write comes first.
    for (const [id, { expiresAt }] of entries) {
      if (expiresAt > now()) break;
      entries.delete(id);
    }
    return entries.get(taskId);
  };
  return {
    write(taskId, field, value) {
      const before = find(taskId);
      const entry = { ...before, [field]: field === 'status' ? value : (before?.[field] ?? value) };
      entries.delete(taskId);
      entries.set(taskId, { ...entry, expiresAt: now() + KEPT_MS });
      return entry;
    },
    read: (taskId) => find(taskId),
    close: () => entries.clear(),
  };
}
