import type { TaskClient } from '@whoa/server/task-client';
import type { ListPage, PauseTarget, TaskCounts, TaskStatus, TaskSummary } from '@whoa/tasks';
import type { WorkerPage } from '@whoa/tasks/internal';
import { describeError, isLoggedOut } from '../api/session.ts';
import { Listeners } from '../model/listeners.ts';

const PAGE = 100;
const POLL_MS = 1_000;
/** After errors the list is asked for less often, up to this. */
const MAX_POLL_MS = 10_000;
const WORKERS = 200;

/** Which tasks are listed. */
export interface TaskFilter {
  readonly status?: TaskStatus | undefined;
  readonly agent?: string | undefined;
  readonly conversation?: string | undefined;
}

/** What the list knows now. */
export interface TaskListState {
  /** Newest first. */
  readonly tasks: readonly TaskSummary[];
  /** There are older tasks that are not loaded. */
  readonly hasMore: boolean;
  readonly isLoaded: boolean;
  readonly counts?: TaskCounts;
  readonly workers?: WorkerPage;
  /** Deliveries that are paused, as far as this user may see them. */
  readonly paused?: readonly PauseTarget[];
  /** Why the list is not live, and since when it is as it was. */
  readonly problem?: { readonly code: string; readonly message: string; readonly since: number };
}

interface TaskListOptions {
  readonly client: TaskClient;
  readonly filter?: TaskFilter;
  /** Whether workers can be seen. */
  readonly withWorkers?: boolean;
  readonly onLoggedOut: () => void;
}

/** A list of tasks that follows the server: it asks every second for the part that is looked at. */
export class TaskList {
  readonly #options: TaskListOptions;
  readonly #rows = new Map<string, TaskSummary>();
  readonly #listeners = new Listeners({ onFirst: () => this.#start(), onLast: () => this.#end() });
  /** Where the loaded part ends; `undefined` before the first page, `''` at the end of all. */
  #next: string | undefined;
  /** The cursors of the pages that were loaded, to ask for one of them again. */
  readonly #cursors: (string | undefined)[] = [undefined];
  #state: TaskListState = { tasks: [], hasMore: false, isLoaded: false };
  #timer: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  /** The rows are those of the state, and in that order. */
  #isSorted = true;
  #isOver = false;
  #isLoading = false;
  /** The page that is looked at. */
  #page = 0;

  constructor(options: TaskListOptions) {
    this.#options = options;
  }

  readonly subscribe: Listeners['add'] = this.#listeners.add;

  readonly state = (): TaskListState => this.#state;

  /** Says which row is in view, so that its page stays current. */
  showRow(row: number): void {
    this.#page = Math.min(Math.floor(row / PAGE), this.#cursors.length - 1);
  }

  /** Loads older tasks. */
  loadMore(): void {
    const cursor = this.#next;
    if (this.#isLoading || !this.#state.hasMore || cursor === undefined) return;
    this.#isLoading = true;
    this.#load(cursor)
      .then(() => {
        this.#cursors.push(cursor);
        this.#publish({});
      })
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#isLoading = false;
      });
  }

  /** Asks now instead of at the next second. */
  refresh(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#poll, 0);
  }

  #start(): void {
    this.#isOver = false;
    document.addEventListener('visibilitychange', this.#onVisible);
    this.refresh();
  }

  #end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    document.removeEventListener('visibilitychange', this.#onVisible);
  }

  readonly #onVisible = (): void => {
    if (!document.hidden) this.refresh();
  };

  readonly #poll = (): void => {
    // Errors are part of the state.
    this.#pollOnce().catch((error: unknown) => this.#fail(error));
  };

  async #pollOnce(): Promise<void> {
    if (this.#isOver || document.hidden) return;
    const { client, withWorkers } = this.#options;
    try {
      const pages = this.#page === 0 ? [undefined] : [undefined, this.#cursors[this.#page]];
      const [counts, workers, queues] = await Promise.all([
        client.counts(),
        withWorkers ? client.workers({ limit: WORKERS }) : undefined,
        withWorkers ? client.queues({ limit: 1 }) : undefined,
        ...pages.map((cursor) => this.#load(cursor)),
      ]);
      this.#failures = 0;
      this.#publish({ isLoaded: true, counts, ...(workers && { workers }), ...(queues && { paused: queues.paused }) });
    } catch (error) {
      this.#fail(error);
    }
    if (this.#isOver) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#poll, Math.min(POLL_MS * 2 ** this.#failures, MAX_POLL_MS));
  }

  async #load(cursor: string | undefined): Promise<void> {
    const { client, filter: { status, agent, conversation } = {} } = this.#options;
    const page = await client.list({
      limit: PAGE,
      brief: true,
      ...(status && { status }),
      ...(agent && { agent }),
      ...(conversation && { conversation }),
      ...(cursor !== undefined && { cursor }),
    });
    this.#forgetMissing(page, cursor);
    for (const task of page.tasks) {
      this.#isSorted &&= this.#rows.has(task.id);
      this.#rows.set(task.id, task);
    }
    const isLast = cursor === this.#cursors.at(-1) || this.#next === cursor;
    if (isLast || this.#next === undefined) this.#next = page.next ?? '';
  }

  /** Removes rows of this part of the list that the server no longer lists. */
  #forgetMissing({ tasks, next }: ListPage, cursor: string | undefined): void {
    const first = cursor === undefined ? Infinity : (tasks[0]?.createdAt ?? Number(cursor.split('/')[0]));
    const last = next === undefined ? -Infinity : (tasks.at(-1)?.createdAt ?? first);
    const listed = new Set(tasks.map(({ id }) => id));
    for (const { id, createdAt } of this.#rows.values()) {
      if (createdAt < first && createdAt > last && !listed.has(id)) {
        this.#rows.delete(id);
        this.#isSorted = false;
      }
    }
  }

  #fail(error: unknown): void {
    if (isLoggedOut(error)) {
      this.#options.onLoggedOut();
      return;
    }
    this.#failures++;
    const { since = Date.now() } = this.#state.problem ?? {};
    this.#set({ ...this.#state, problem: { ...describeError(error), since } });
  }

  #publish(change: Partial<TaskListState>): void {
    const { problem: _, ...state } = this.#state;
    const tasks = this.#isSorted
      ? this.#state.tasks.map(({ id }) => this.#rows.get(id)!)
      : [...this.#rows.values()].sort(newestFirst);
    this.#isSorted = true;
    this.#set({ ...state, ...change, tasks, hasMore: this.#next !== undefined && this.#next !== '' });
  }

  #set(state: TaskListState): void {
    this.#state = state;
    this.#listeners.notify();
  }
}

function newestFirst(a: TaskSummary, b: TaskSummary): number {
  return b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1);
}
