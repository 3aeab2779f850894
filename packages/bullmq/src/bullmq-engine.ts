import type { StopMode } from '@whoa/core';
import { systemWorld } from '@whoa/core/embed';
import { settings, waitAtMost } from '@whoa/core/internal';
import {
  isFinalStatus,
  type Runner,
  type TaskEngine,
  type TaskRecord,
  type TaskRef,
  type TaskStore,
  type TaskSummary,
} from '@whoa/tasks';
import type { Job, Queue, Worker, WorkerOptions } from 'bullmq';
import { type Library, loadLibrary } from './library.ts';
import { createOfferingStore } from './ticketing-store.ts';
import { type Offering, offerTicket, readTicket, reofferTickets } from './tickets.ts';

/** Options of an engine. */
export interface BullmqEngineOptions {
  readonly store: TaskStore;
  /** The queue of the tickets. It stays yours: close it after the engine. Its `error` event reports what went wrong. */
  readonly queue: Queue;
  /** The agents whose tasks go through the queue. No other worker may serve them. */
  readonly agents: readonly string[];
  /** The longest time until a lost ticket is replaced. Defaults to 15 s. */
  readonly reofferIntervalMs?: number | undefined;
}

/** Options of the worker that BullMQ starts. `connection` and `prefix` default to those of the queue. */
export type TicketWorkerOptions = Partial<Omit<WorkerOptions, 'autorun' | 'maxStalledCount' | 'maxStartedAttempts'>>;

/**
 * BullMQ in front of a task store. Each waiting task has a ticket: a job with the task's id. The queue decides when a
 * ticket is handed out; the store decides what happens then. A ticket may be lost, late or doubled.
 */
export interface BullmqEngine extends TaskEngine {
  /** The store. Tasks that are created through it get their ticket immediately; all others within `reofferIntervalMs`. */
  readonly store: TaskStore;
  /** Runs tasks when their tickets are handed out. The runner must use `store`, and must not be served otherwise. */
  serve(runner: Runner, options?: TicketWorkerOptions): Promise<void>;
  /** Gives every waiting task without a ticket a new one. Returns how many. Serving engines do this by themselves. */
  reissueTickets(): Promise<number>;
  /**
   * Stops the runner, whose tasks go back to the store, and puts their tickets back into the queue. Calling it again can
   * only make the stop harder; `mode` defaults to `graceful`, and disposing uses `now`. The store can still be used.
   */
  close(mode?: StopMode): Promise<void>;
}
/** The ticket of a task that waits for an answer looks this much more rarely. */
const PARKED_LOOKS = 10;

/** The store counts crashes and fails a task after too many; BullMQ must not do so before. */
const FIXED = { maxStalledCount: 1_000_000, autorun: false } as const;
/** How long `create` and `cancel` wait for the queue. */
const QUEUE_TIMEOUT_MS = 1_000;
/** How many tickets wait for a lost connection. Tasks beyond that get theirs from the next scan. */
const MAX_OFFERS = 1_000;
/** How long a close waits for the queue after the tasks were returned. Without it, tickets follow when their locks end. */
const CLOSE_MS = 2_000;
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
      reofferIntervalMs: settings.boundedMs({ max: 86_400_000 }),
    }),
  );
}

class Engine implements BullmqEngine {
  readonly store: TaskStore;
  readonly #store: TaskStore;
  readonly #queue: Queue;
  readonly #offering: Offering;
  readonly #reofferIntervalMs: number;
  readonly #successors = new Map<string, string>();
  #served: { readonly runner: Runner; readonly worker: Worker; readonly library: Library } | undefined;
  #isServing = false;
  #offers = 0;
  #timer: Disposable | undefined;
  #scan: Promise<unknown> | undefined;
  #isClosed = false;

  constructor({ store, queue, agents, reofferIntervalMs = 15_000 }: BullmqEngineOptions) {
    this.#store = store;
    this.#queue = queue;
    this.#offering = { store, queue, agents: new Set(agents), onError: (error) => this.#report(error) };
    this.#reofferIntervalMs = reofferIntervalMs;
    this.store = createOfferingStore(store, {
      onCreated: (task) => this.#attemptBriefly(() => offerTicket(task, this.#offering)),
      onCancelled: (id) => this.#attemptBriefly(() => queue.remove(id)),
      onAnswered: (ref) => this.#attemptBriefly(() => this.#offer(ref)),
      onSuccessor: (ended, successor) => this.#successors.set(ended, successor),
    });
  }

  async serve(runner: Runner, options: TicketWorkerOptions = {}): Promise<void> {
    if (this.#isClosed || this.#isServing) {
      throw new Error('serve: this engine is already serving or was closed; create another engine');
    }
    this.#isServing = true;
    try {
      const library = await loadLibrary();
      if (this.#isClosed) return;
      const { connection, prefix = 'bull' } = this.#queue.opts as WorkerOptions;
      const given = { connection, prefix, ...WORKER_DEFAULTS, ...options, ...FIXED };
      const worker = new library.Worker(this.#queue.name, (job, lock) => this.#work(job, lock!), given);
      worker.on('error', (error) => this.#report(error));
      this.#served = { runner, worker, library };
      // No agents: this runner takes only tasks to settle, and frees those of crashed workers.
      await runner.serve({ concurrency: given.concurrency, agents: [] });
      if (this.#isClosed) return;
      this.#attempt(() => worker.run()).catch(() => {});
      // Tasks from before the engine have no ticket.
      this.#scheduleReoffer(0);
    } catch (error) {
      const { worker } = this.#served ?? {};
      this.#served = undefined;
      this.#isServing = false;
      await worker?.close();
      throw error;
    }
  }

  async isReady(): Promise<boolean> {
    let isReady = false;
    const readStatus = async (): Promise<void> => {
      isReady = (await this.#queue.getBackend().client).status === 'ready';
    };
    await this.#attemptBriefly(readStatus);
    return isReady && !this.#isClosed;
  }

  reissueTickets(): Promise<number> {
    return reofferTickets(this.#offering);
  }

  async close(mode: StopMode = 'graceful'): Promise<void> {
    this.#isClosed = true;
    this.#timer?.[Symbol.dispose]();
    const { worker, runner } = this.#served ?? {};
    // Closing the worker first stops the deliveries; it ends when the runner has returned its tasks.
    const closed = Promise.all([worker?.close(), this.#scan]);
    await runner?.stop(mode);
    await waitAtMost(closed, CLOSE_MS);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close('now');
  }

  async #work(job: Job, lock: string): Promise<{ readonly status: string }> {
    let task: TaskRecord | undefined;
    try {
      const ref = await this.#toRef(job);
      task = await this.#run(ref);
    } catch (error) {
      if (error instanceof this.#served!.library.UnrecoverableError) throw error;
      this.#report(error);
      return this.#postpone(job, lock, undefined);
    }
    if (task !== undefined && !isFinalStatus(task.status)) return this.#postpone(job, lock, task);
    if (task?.status === 'failed') throw this.#unrecoverable(task.outcome?.error?.message ?? 'The task failed');
    return { status: task?.status ?? 'unknown' };
  }

  /** Returns the task of a job. Creates it if the job asks for it, under a key that is the same at every delivery. */
  async #toRef({ id, data }: Job): Promise<TaskRef> {
    try {
      const ticket = readTicket(data);
      if ('id' in ticket) return ticket;
      const { task, policy } = ticket;
      const key = task.key ?? `bullmq ${this.#queue.name} ${id}`;
      const receipt = await this.#store.create({ ...task, key }, policy && { policy });
      if ('task' in receipt) return { tenant: task.tenant, id: receipt.task.id };
      throw new Error(`The store did not create the task of job ${id}: ${receipt.result}`);
    } catch (error) {
      if (error instanceof TypeError || error instanceof RangeError) throw this.#unrecoverable(error.message);
      throw error;
    }
  }

  /** The error that makes BullMQ fail a job without retries. */
  #unrecoverable(message: string): Error {
    return new this.#served!.library.UnrecoverableError(message);
  }

  /** Runs a task if it can be claimed. Returns it as the store has it afterwards. */
  async #run(ref: TaskRef): Promise<TaskRecord | undefined> {
    try {
      await this.#served!.runner.runExisting(ref, { wait: false });
    } catch (error) {
      // Whether the task has ended is for the store to say. Returning it at the close is not an error.
      if (!this.#isClosed && (await this.#store.get(ref)) !== undefined) this.#report(error);
    }
    const successor = this.#successors.get(ref.id);
    this.#successors.delete(ref.id);
    if (successor !== undefined) await this.#attempt(() => this.#offer({ tenant: ref.tenant, id: successor }));
    return this.#store.get(ref);
  }

  async #offer(ref: TaskRef): Promise<void> {
    const task = await this.#store.get(ref);
    if (task !== undefined) await offerTicket(task, this.#offering);
  }

  /** Puts a ticket back: immediately if the engine closes, otherwise for when the task may be ready. */
  async #postpone(job: Job, lock: string, task: TaskSummary | undefined): Promise<never> {
    const { WaitingError, DelayedError } = this.#served!.library;
    if (this.#isClosed) {
      await job.moveToWait(lock);
      throw new WaitingError();
    }
    const now = Date.now();
    const startsAt = task?.stage === 'delayed' ? (task.stageAt ?? 0) : 0;
    // An answer brings the ticket of a parked task back. Only an expiry has to be found by looking.
    const againMs = task?.stage === 'parked' ? PARKED_LOOKS * this.#reofferIntervalMs : this.#reofferIntervalMs;
    await job.moveToDelayed(startsAt > now ? startsAt : now + againMs, lock);
    throw new DelayedError();
  }

  /** Twice per `reofferIntervalMs` each worker checks whether another one scanned the store; if not, it does. */
  #scheduleReoffer(delayMs: number): void {
    const intervalMs = this.#reofferIntervalMs / 2;
    this.#timer = systemWorld.clock.setTimer(delayMs, () => {
      this.#scan = this.#attempt(async () => {
        const client = await this.#queue.getBackend().client;
        const key = this.#queue.toKey('reoffered');
        if ((await client.get(key)) !== null) return;
        await client.set(key, this.#served!.runner.worker, { PX: Math.max(1, Math.floor(intervalMs)) });
        await this.reissueTickets();
      }).then(() => {
        if (!this.#isClosed) this.#scheduleReoffer(intervalMs);
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
  async #attemptBriefly(action: () => Promise<unknown>): Promise<void> {
    if (this.#offers >= MAX_OFFERS) return;
    this.#offers++;
    await waitAtMost(
      this.#attempt(action).finally(() => this.#offers--),
      QUEUE_TIMEOUT_MS,
    );
  }

  #report(error: unknown): void {
    if (!this.#isClosed) this.#queue.emit('error', error instanceof Error ? error : new Error(String(error)));
  }
}
