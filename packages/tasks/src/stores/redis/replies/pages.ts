import type { ListPage } from '../../../store.ts';
import type { TaskSummary } from '../../../task.ts';
import type { Reply } from '../connection/connection.ts';
import { toSummary } from './replies.ts';

interface Position {
  readonly createdAt: number;
  readonly id: string;
}

/** Merges the results of all shards into one page, newest first. A shard that stopped early may have more. */
export function toPage(replies: readonly Reply[], limit: number): ListPage {
  const found: TaskSummary[] = [];
  let stop: Position | undefined;
  for (const reply of replies) {
    const [heads, stoppedAt] = reply as unknown as [Reply[], [string, string] | null];
    for (const head of heads) found.push(toSummary(head));
    const position = stoppedAt === null ? undefined : { createdAt: Number(stoppedAt[0]), id: stoppedAt[1] };
    if (position !== undefined && (stop === undefined || newestFirst(position, stop) < 0)) stop = position;
  }
  const known = found.filter((task) => stop === undefined || newestFirst(task, stop) <= 0).toSorted(newestFirst);
  const tasks = known.slice(0, limit);
  const last = known.length > limit ? tasks.at(-1) : stop;
  return last === undefined ? { tasks } : { tasks, next: `${last.createdAt}/${last.id}` };
}

function newestFirst(a: Position, b: Position): number {
  return b.createdAt - a.createdAt || (a.id === b.id ? 0 : a.id < b.id ? 1 : -1);
}
