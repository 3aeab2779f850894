import { DEFAULTS } from '../../ledger/rules/rules.ts';
import type { ClientStore } from '../../store.ts';
import type { JournalEntry, TaskSummary } from '../../task.ts';

/**
 * Reads the whole journal of a task in pages, up to the position in its record.
 *
 * @returns The entries.
 */
export async function readJournal(store: ClientStore, task: TaskSummary): Promise<readonly JournalEntry[]> {
  const journal: JournalEntry[] = [];
  for (let after = 0; after < task.position; after = journal.at(-1)!.position) {
    const piece = await store.read(task, { after, limit: DEFAULTS.readLimit });
    if (piece.length === 0) break;
    journal.push(...piece);
  }
  return journal;
}
