import type { World } from '@whoa/core/embed';
import { isFinalStatus, type TaskRecord, type TaskRef, type TaskStore, type TaskSummary } from '@whoa/tasks';
import type { Hint } from '@whoa/tasks/store';

export interface EndWatcherOptions {
  readonly store: TaskStore;
  readonly world: World;
  /** A tenant whose tasks are not looked at. */
  readonly except: string;
  /** Called at least once with each ended task. If it rejects, it is called again later. */
  readonly onEnd: (task: TaskSummary) => Promise<void>;
  /** Called at least once with a task after a question of it was asked, answered or closed. */
  readonly onQuestions?: (task: TaskRecord) => Promise<void>;
  readonly onError: (error: unknown) => void;
}

/** How many tasks are read at the same time. */
const PARALLEL = 8;
/** Beyond this, what changed is found by looking through the store. */
const MAX_WAITING = 10_000;
/** At the start, and when changes may have been missed: how far back, and how many tasks of each tenant. */
const CATCH_UP_MS = 3_600_000;
const MAX_PER_TENANT = 500;
/** The pause after a failure of the store. */
const RETRY_DELAY_MS = 5_000;

/**
 * Finds the tasks of a store that ended, however they ended: by a worker, by a cancel before they started, or because
 * their workers crashed too often. The store tells of changes; what it may not have told is looked for.
 */
export class TaskEndWatcher implements AsyncDisposable {
  readonly #options: EndWatcherOptions;
  readonly #waiting = new Map<string, TaskRef>();
  readonly #busy = new Set<Promise<void>>();
  #watching: AsyncDisposable | undefined;
  #retryTimer: Disposable | undefined;
  /** Changes may have been missed. */
  #isMissing = true;
  #isScanning = false;
  #isStopped = false;

  constructor(options: EndWatcherOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#watching = await this.#options.store.watch({}, this.#handleHint);
    this.#pump();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    this.#retryTimer?.[Symbol.dispose]();
    await Promise.all(this.#busy);
    await this.#watching?.[Symbol.asyncDispose]();
  }

  readonly #handleHint = (hint: Hint): void => {
    if (hint.type === 'resync') this.#isMissing = true;
    else if (hint.type !== 'status' && (hint.type !== 'command' || !this.#options.onQuestions)) return;
    else if (hint.tenant === this.#options.except) return;
    else if (this.#waiting.size >= MAX_WAITING) this.#isMissing = true;
    else this.#waiting.set(hint.id, { tenant: hint.tenant, id: hint.id });
    this.#pump();
  };

  #pump(): void {
    if (this.#isStopped || this.#retryTimer !== undefined) return;
    if (this.#isMissing && !this.#isScanning) {
      this.#isMissing = false;
      this.#isScanning = true;
      this.#run(this.#scan().finally(() => (this.#isScanning = false)));
    }
    for (const [id, ref] of this.#waiting) {
      if (this.#busy.size >= PARALLEL) return;
      this.#waiting.delete(id);
      this.#run(this.#checkTask(ref));
    }
  }

  #run(work: Promise<void>): void {
    const kept = work
      .catch((error: unknown) => this.#pause(error))
      .finally(() => {
        this.#busy.delete(kept);
        this.#pump();
      });
    this.#busy.add(kept);
  }

  /** The store failed. Look through it later, because some ends were not passed on. */
  #pause(error: unknown): void {
    if (this.#isStopped) return;
    this.#options.onError(error);
    this.#isMissing = true;
    this.#retryTimer ??= this.#options.world.clock.setTimer(RETRY_DELAY_MS, () => {
      this.#retryTimer = undefined;
      this.#pump();
    });
  }

  async #checkTask(ref: TaskRef): Promise<void> {
    const { store, onEnd, onQuestions } = this.#options;
    const task = await store.get(ref);
    if (task?.questions !== undefined) await onQuestions?.(task);
    if (task !== undefined && isFinalStatus(task.status)) await onEnd(task);
  }

  async #scan(): Promise<void> {
    const { store, except } = this.#options;
    let cursor: string | undefined;
    do {
      const page = await store.tenants(cursor === undefined ? {} : { cursor });
      for (const tenant of page.tenants) {
        if (this.#isStopped) return;
        if (tenant !== except) await this.#scanTenant(tenant);
      }
      cursor = page.next;
    } while (cursor !== undefined);
  }

  async #scanTenant(tenant: string): Promise<void> {
    const { store, onEnd, onQuestions, world } = this.#options;
    const { tasks } = await store.list({ tenant, limit: MAX_PER_TENANT });
    for (const task of tasks) {
      const isRecent = (task.endedAt ?? Infinity) > world.clock.now() - CATCH_UP_MS;
      if (!isRecent || this.#isStopped) continue;
      if (task.hasAsked === true && onQuestions !== undefined) await this.#checkTask(task);
      else if (isFinalStatus(task.status)) await onEnd(task);
    }
  }
}
