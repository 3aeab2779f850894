import type { StopMode } from '@whoa/core';
import { systemWorld } from '@whoa/core/embed';
import { settings, waitAtMost } from '@whoa/core/internal';
import { isFinalStatus, type Runner, type TaskHead, type TaskRecord, type TaskRef, type TaskStore } from '@whoa/tasks';
import {
  DelayedError,
  type Job,
  type Queue,
  UnrecoverableError,
  WaitingError,
  Worker,
  type WorkerOptions,
} from 'bullmq';
import { createOfferingStore } from './offering-store.ts';
import { needsTicket, readTicket, toJobOptions } from './ticket.ts';

/** Options of an engine. */
export interface BullmqEngineOptions {
  readonly store: TaskStore;
  /** The queue of the tickets. It stays yours: close it after the engine. Its `error` event reports what went wrong. */
  readonly queue: Queue;
  /** The agents whose tasks go through the queue. No other worker may serve them. */
  readonly agents: readonly string[];
  /** The longest time until a lost ticket is replaced. Defaults to 15 s. */
  readonly reofferMs?: number;
}

/** Options of the worker that BullMQ starts. `connection` and `prefix` default to those of the queue. */
export type TicketWorkerOptions = Partial<Omit<WorkerOptions, 'autorun' | 'maxStalledCount' | 'maxStartedAttempts'>>;

/**
 * BullMQ in front of a task store. Each waiting task has a ticket: a job with the task's id. The queue decides when a
 * ticket is handed out; the store decides what happens then. A ticket may be lost, late or doubled.
 */
export interface BullmqEngine extends AsyncDisposable {
  /** The store. Tasks that are created through it get their ticket at once; all others within `reofferMs`. */
  readonly store: TaskStore;
  /** Runs tasks when their tickets are handed out. The runner must use `store`, and must not be served otherwise. */
  serve(runner: Runner, options?: TicketWorkerOptions): Promise<void>;
  /** Gives every waiting task without a ticket a new one. Returns how many. Serving engines do this by themselves. */
  reoffer(): Promise<number>;
  /**
   * Stops the runner, whose tasks go back to the store, and puts their tickets back into the queue. Calling it again can
   * only make the stop harder; `mode` defaults to `graceful`, and disposing uses `now`.
   */
  close(mode?: StopMode): Promise<void>;
}

/** The store counts crashes and fails a task after too many; BullMQ must not do so before. */
const MAX_STALLED = 1_000_000;
/** How long `create` and `cancel` wait for the queue. */
const OFFER_MS = 1_000;
const WORKER_DEFAULTS = {
  concurrency: 16,
  lockDuration: 15_000,
  stalledInterval: 5_000,
  removeOnComplete: { count: 1_000 },
  removeOnFail: { count: 1_000 },
};

/**
 * Puts BullMQ in front of a task store, for its rate limits, priorities, schedulers and dashboards.
 *
 * @returns The engine. Close it to put unfinished work back.
 * @throws {@link SettingsError} when an option is invalid.
 *
 * @example
 * ```ts
 * import { createBullmqEngine } from '@whoa/bullmq';
 * import { createRunner } from '@whoa/tasks';
 * const engine = createBullmqEngine({ store, queue, agents: ['assistant'] });
 * const runner = createRunner({ store: engine.store, agents: { assistant: agent } });
 * await engine.serve(runner, { concurrency: 20, limiter: { max: 10, duration: 1_000 } });
 * ```
 */
export function createBullmqEngine(options: BullmqEngineOptions): BullmqEngine {
  return new Engine(
    settings.readSettings<BullmqEngineOptions>(options, {
      store: settings.required(settings.having('a task store', 'create', 'get', 'cancel')),
      queue: settings.required(settings.having('a BullMQ queue', 'add', 'getJobState', 'remove')),
      agents: settings.required(settings.listOf(settings.nonEmptyText)),
      reofferMs: settings.boundedMs({ max: 86_400_000 }),
    }),
  );
}

class Engine implements BullmqEngine {
  readonly store: TaskStore;
  readonly #store: TaskStore;
  readonly #queue: Queue;
  readonly #agents: ReadonlySet<string>;
  readonly #reofferMs: number;
  readonly #successors = new Map<string, string>();
  #served: { readonly runner: Runner; readonly worker: Worker } | undefined;
  #timer: Disposable | undefined;
  #scan: Promise<unknown> | undefined;
  #isClosed = false;

  constructor({ store, queue, agents, reofferMs = 15_000 }: BullmqEngineOptions) {
    this.#store = store;
    this.#queue = queue;
    this.#agents = new Set(agents);
    this.#reofferMs = reofferMs;
    this.store = createOfferingStore(store, {
      onCreated: (task) => this.#attemptBriefly(() => this.#offer(task)),
      onCancelled: (id) => this.#attemptBriefly(() => queue.remove(id)),
      onSuccessor: (ended, successor) => this.#successors.set(ended, successor),
    });
  }

  async serve(runner: Runner, options: TicketWorkerOptions = {}): Promise<void> {
    if (this.#isClosed || this.#served !== undefined) {
      throw new Error('serve: this engine is serving or was closed; create another engine');
    }
    const { connection, prefix = 'bull' } = this.#queue.opts as WorkerOptions;
    const given = { connection, prefix, ...WORKER_DEFAULTS, ...options, maxStalledCount: MAX_STALLED, autorun: false };
    const worker = new Worker(this.#queue.name, (job, lock) => this.#work(job, lock!), given);
    worker.on('error', (error) => this.#report(error));
    this.#served = { runner, worker };
    try {
      // No agents: this runner takes only tasks to settle, and frees those of crashed workers.
      await runner.serve({ concurrency: given.concurrency, agents: [] });
    } catch (error) {
      this.#served = undefined;
      await worker.close();
      throw error;
    }
    if (this.#isClosed) return;
    this.#attempt(() => worker.run()).catch(() => {});
    this.#reofferSoon();
  }

  async reoffer(): Promise<number> {
    let offered = 0;
    for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
      const page = await this.#store.tenants(cursor === undefined ? {} : { cursor });
      for (const tenant of page.tenants) {
        for (const status of ['init', 'cancelling'] as const) offered += await this.#reofferTo(tenant, status);
      }
      cursor = page.next;
    }
    return offered;
  }

  async close(mode: StopMode = 'graceful'): Promise<void> {
    this.#isClosed = true;
    this.#timer?.[Symbol.dispose]();
    const { worker, runner } = this.#served ?? {};
    // Closing the worker first stops the deliveries; it ends when the runner has handed back its tasks.
    await Promise.all([worker?.close(), runner?.stop(mode), this.#scan]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close('now');
  }

  async #work(job: Job, lock: string): Promise<{ readonly status: string }> {
    let task: TaskRecord | undefined;
    try {
      const ref = await this.#refOf(job);
      task = await this.#run(ref);
    } catch (error) {
      if (error instanceof UnrecoverableError) throw error;
      this.#report(error);
      return this.#postpone(job, lock, undefined);
    }
    if (task !== undefined && !isFinalStatus(task.status)) return this.#postpone(job, lock, task);
    if (task?.status === 'failed') throw new UnrecoverableError(task.outcome?.error?.message ?? 'The task failed');
    return { status: task?.status ?? 'unknown' };
  }

  /** Returns the task of a job. Creates it if the job says so, under a key that is the same at every delivery. */
  async #refOf({ id, data }: Job): Promise<TaskRef> {
    const ticket = readTicket(data);
    if ('id' in ticket) return ticket;
    const { task, policy } = ticket;
    try {
      const key = task.key ?? `bullmq ${this.#queue.name} ${id}`;
      const receipt = await this.#store.create({ ...task, key }, policy && { policy });
      if ('task' in receipt) return { tenant: task.tenant, id: receipt.task.id };
      throw new Error(`The store did not create the task of job ${id}: ${receipt.answer}`);
    } catch (error) {
      if (error instanceof TypeError || error instanceof RangeError) throw new UnrecoverableError(error.message);
      throw error;
    }
  }

  /** Runs a task if it can be claimed. Returns it as the store has it afterwards. */
  async #run(ref: TaskRef): Promise<TaskRecord | undefined> {
    try {
      await this.#served!.runner.work(ref, { wait: false });
    } catch (error) {
      // Whether the task has ended is for the store to say. Handing it back at the close is no error.
      if (!this.#isClosed && (await this.#store.get(ref)) !== undefined) this.#report(error);
    }
    const successor = this.#successors.get(ref.id);
    this.#successors.delete(ref.id);
    if (successor !== undefined) {
      const next = await this.#store.get({ tenant: ref.tenant, id: successor });
      if (next !== undefined) await this.#attempt(() => this.#offer(next));
    }
    return this.#store.get(ref);
  }

  /** Puts a ticket back: at once if the engine closes, otherwise for when the task may be ready. */
  async #postpone(job: Job, lock: string, task: TaskHead | undefined): Promise<never> {
    if (this.#isClosed) {
      await job.moveToWait(lock);
      throw new WaitingError();
    }
    const now = Date.now();
    const startsAt = task?.stage === 'later' ? (task.stageAt ?? 0) : 0;
    await job.moveToDelayed(startsAt > now ? startsAt : now + this.#reofferMs, lock);
    throw new DelayedError();
  }

  /** Makes sure that a waiting task has a ticket. Returns whether it had to be given one. */
  async #offer(task: TaskHead): Promise<boolean> {
    const { id, tenant, agent, stage } = task;
    if (!this.#agents.has(agent) || !needsTicket(task)) return false;
    const state = await this.#queue.getJobState(id);
    // The task became ready before its ticket was due.
    if (state === 'delayed' && stage === 'ready') await (await this.#queue.getJob(id))?.promote();
    if (state === 'completed' || state === 'failed') await this.#queue.remove(id);
    else if (state !== 'unknown') return false;
    await this.#queue.add(agent, { tenant, id }, toJobOptions(task));
    return true;
  }

  async #reofferTo(tenant: string, status: 'init' | 'cancelling'): Promise<number> {
    let offered = 0;
    for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
      const page = await this.#store.list({ tenant, status, ...(cursor !== undefined && { cursor }) });
      const given = await Promise.all(
        page.tasks.map((task) => this.#offer(task).catch((error) => this.#report(error))),
      );
      offered += given.filter((isNew) => isNew === true).length;
      cursor = page.next;
    }
    return offered;
  }

  /** Twice per `reofferMs` each worker checks whether another one scanned the store; if not, it does. */
  #reofferSoon(): void {
    const everyMs = this.#reofferMs / 2;
    this.#timer = systemWorld.clock.setTimer(everyMs, () => {
      this.#scan = this.#attempt(async () => {
        const client = await this.#queue.getBackend().client;
        const key = this.#queue.toKey('reoffered');
        if ((await client.get(key)) !== null) return;
        await client.set(key, this.#served!.runner.worker, { PX: Math.max(1, Math.floor(everyMs)) });
        await this.reoffer();
      }).then(() => {
        if (!this.#isClosed) this.#reofferSoon();
      });
    });
  }

  /** Does something that is repeated later if it fails. */
  async #attempt(action: () => Promise<unknown>): Promise<void> {
    try {
      await action();
    } catch (error) {
      this.#report(error);
    }
  }

  /** Without a connection BullMQ waits until it is back. Callers of the store do not have to. */
  #attemptBriefly(action: () => Promise<unknown>): Promise<void> {
    return waitAtMost(this.#attempt(action), OFFER_MS);
  }

  #report(error: unknown): void {
    if (!this.#isClosed) this.#queue.emit('error', error instanceof Error ? error : new Error(String(error)));
  }
}
