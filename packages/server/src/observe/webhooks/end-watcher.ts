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
/** Where each tenant is watched by itself: how many, and how often new ones are looked for. */
const MAX_WATCHED = 1_000;
const TENANTS_MS = 5_000;
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
  readonly #watches = new Map<string, AsyncDisposable>();
  #retryTimer: Disposable | undefined;
  #tenantsTimer: Disposable | undefined;
  /** Whether the store can only be watched tenant by tenant. */
  #isByTenant = false;
  /** What to look through next. */
  #missing: 'all' | 'new tenants' | undefined = 'all';
  #isScanning = false;
  #isStopped = false;

  constructor(options: EndWatcherOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    try {
      this.#watches.set('', await this.#options.store.watch({}, this.#handleHint));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      this.#isByTenant = true;
    }
    this.#pump();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    this.#retryTimer?.[Symbol.dispose]();
    await Promise.all(this.#busy);
    this.#tenantsTimer?.[Symbol.dispose]();
    await Promise.all([...this.#watches.values()].map((watch) => watch[Symbol.asyncDispose]()));
    this.#watches.clear();
  }

  readonly #handleHint = (hint: Hint): void => {
    if (hint.type === 'resync') this.#missing = 'all';
    else if (hint.type !== 'status' && (hint.type !== 'command' || !this.#options.onQuestions)) return;
    else if (hint.tenant === this.#options.except) return;
    else if (this.#waiting.size >= MAX_WAITING) this.#missing = 'all';
    else this.#waiting.set(hint.id, { tenant: hint.tenant, id: hint.id });
    this.#pump();
  };

  #pump(): void {
    if (this.#isStopped || this.#retryTimer !== undefined) return;
    if (this.#missing !== undefined && !this.#isScanning) {
      const isAll = this.#missing === 'all';
      this.#missing = undefined;
      this.#isScanning = true;
      this.#run(this.#scan(isAll).finally(() => (this.#isScanning = false)));
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
    this.#missing = 'all';
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

  async #scan(isAll: boolean): Promise<void> {
    const { store, except } = this.#options;
    let cursor: string | undefined;
    do {
      const page = await store.tenants(cursor === undefined ? {} : { cursor });
      for (const tenant of page.tenants) {
        if (this.#isStopped) return;
        const isKnown = !this.#isByTenant || this.#watches.has(tenant);
        if (tenant === except || (isKnown && !isAll)) continue;
        if (!isKnown && this.#watches.size < MAX_WATCHED)
          this.#watches.set(tenant, await store.watch({ tenant }, this.#handleHint));
        await this.#scanTenant(tenant);
      }
      cursor = page.next;
    } while (cursor !== undefined);
    if (!this.#isByTenant) return;
    this.#tenantsTimer?.[Symbol.dispose]();
    this.#tenantsTimer = this.#options.world.clock.setTimer(TENANTS_MS, () => {
      this.#missing ??= 'new tenants';
      this.#pump();
    });
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
