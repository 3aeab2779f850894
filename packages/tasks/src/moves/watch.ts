import { isFinal } from '../status.ts';
import { isWatched, type TaskRef } from '../task.ts';
import { hintOf, type Tables } from './tables.ts';

/** Notes that somebody reads a journal along. Writes only when the note would otherwise soon be over. */
export function watchMove(
  tables: Tables,
  { task: ref, watchMs }: { task: TaskRef; watchMs: number },
  now: number,
): void {
  const task = tables.task(ref.id);
  if (task === undefined || task.tenant !== ref.tenant || isFinal(task.status)) return;
  if ((task.watchedUntil ?? 0) >= now + watchMs / 2) return;
  const watched = { ...task, watchedUntil: now + watchMs };
  tables.saveTask(watched);
  if (!isWatched(task, now)) tables.tell(hintOf('command', watched));
}
