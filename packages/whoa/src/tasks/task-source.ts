import type { StopMode } from '@whoa/core';
import type {
  ListFilter,
  ListPage,
  SendReceipt,
  StoreCancelReceipt,
  TaskCounts,
  TaskHead,
  TaskRecord,
  WorkerPage,
} from '@whoa/tasks';
import type { FollowOptions } from './follow-task.ts';
import { isLost } from './local-tasks.ts';

interface CancelRequest {
  readonly reason: string | undefined;
  readonly mode: StopMode;
  readonly undo: boolean;
}

/** The tasks that a command is about: those of one tenant, in a store or behind a server. */
export interface TaskSource extends AsyncDisposable {
  /** How a stop goes about it unless the command says so. */
  readonly ladder: StopMode;
  get(id: string): Promise<TaskRecord | undefined>;
  list(filter: Omit<ListFilter, 'tenant'>): Promise<ListPage>;
  cancel(id: string, request: CancelRequest): Promise<StoreCancelReceipt>;
  cancelCall(id: string, callId: string, reason: string | undefined): Promise<SendReceipt>;
  /** Reads a task's journal along until it has ended, or until it is told to stop. */
  follow(id: string, options: FollowOptions): Promise<TaskRecord>;
  counts(): Promise<readonly TaskCounts[]>;
  workers(): Promise<WorkerPage>;
  /** Takes away from workers that have died what they held. */
  freeLost(): Promise<void>;
  /** Writes the end of a cancelled task that nobody works on any more. Nothing of it runs again. */
  settleLost(task: TaskRecord): Promise<void>;
}

/** Each page of a server holds so many at most. */
const MAX_PAGE = 1_000;

/** The first tasks that match, the newest first, and whether there are more. */
export async function listTasks(
  source: Pick<TaskSource, 'list'>,
  { limit, ...filter }: Omit<ListFilter, 'tenant' | 'cursor' | 'limit'> & { readonly limit: number },
): Promise<{ readonly tasks: readonly TaskHead[]; readonly hasMore: boolean }> {
  const tasks: TaskHead[] = [];
  for (let cursor: string | undefined; ; ) {
    const size = Math.min(MAX_PAGE, limit - tasks.length);
    const page = await source.list({ ...filter, limit: size, ...(cursor !== undefined && { cursor }) });
    tasks.push(...page.tasks);
    cursor = page.next;
    if (cursor === undefined || tasks.length >= limit) return { tasks, hasMore: cursor !== undefined };
  }
}

/** A task that was freed is taken over soon where there are workers; where there are none it stays as it is. */
const TAKEN_OVER_MS = 3_000;

/** Frees what was lost each time it is asked, and says whether a task has been lost for so long that nobody takes it over. */
export function createLostCheck(source: TaskSource): (task: TaskHead) => Promise<boolean> {
  let since: number | undefined;
  return async (task) => {
    await source.freeLost();
    if (!isLost(task)) since = undefined;
    else since ??= performance.now();
    return since !== undefined && performance.now() - since >= TAKEN_OVER_MS;
  };
}
