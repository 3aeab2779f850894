import type { TaskRecord } from '@whoa/tasks';
import { PendingQuestions } from '@whoa/tasks/internal';
import type { TaskSource } from './source/task-source.ts';

/** Reads the journal up to now, and returns the questions that wait for an answer. */
export async function readPending(source: TaskSource, { id, position }: TaskRecord): Promise<PendingQuestions> {
  const pending = new PendingQuestions();
  if (position === 0) return pending;
  await source.follow(id, {
    onEntry(entry) {
      pending.note(entry);
      return entry.position >= position ? 'stop' : undefined;
    },
    onRecord: () => 'stop',
  });
  return pending;
}
