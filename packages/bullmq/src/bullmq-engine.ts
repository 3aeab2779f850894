import { SettingsError, type StopMode } from '@whoa/core';
import { settings, waitAtMost } from '@whoa/core/internal';
import type { OfferSource, Runner, TaskEngine, TaskStore } from '@whoa/tasks';
import type { Job, Worker, WorkerOptions } from 'bullmq';
import { JobLoop } from './job-loop.ts';
import { type Library, loadLibrary } from './library.ts';
import { type BullmqEngineOptions, OfferQueue } from './offer-queue.ts';
import { createTicket, type JobData, type Offer, type OfferResult, readJob } from './offers.ts';
import { watchForLoss } from './sentinel.ts';

/** Options of the worker that BullMQ starts. `connection` and `prefix` default to those of the queue. */
export type OfferWorkerOptions = Partial<Omit<WorkerOptions, 'autorun' | 'maxStalledCount' | 'maxStartedAttempts'>>;

/**
 * BullMQ delivers the tasks of some agents. A job means: take a task now. It ends when that was decided, not when the task
 * ends. A job may be lost, late or doubled; the store decides what it starts.
 */
export interface BullmqEngine extends TaskEngine {
  /**
   * Has the store give the agents to this engine, and offers what this process makes ready from now on. `serve` does it by
   * itself. Rejects with `SettingsError` if another engine delivers one of them.
   */
  start(): Promise<void>;
  /** Runs tasks when their jobs are handed out, and settles those that are being stopped. */
  serve(runner: Runner, options?: OfferWorkerOptions): Promise<void>;
}

/** The store counts crashes and fails a task after too many; BullMQ must not do so before. */
const FIXED = { maxStalledCount: 1_000_000, autorun: false } as const;
/** How long a close waits for the queue. Without it, jobs follow when their locks end. */
const CLOSE_MS = 2_000;
/** When a job is handed out again that this worker cannot use. */
const RETRY_MS = 1_000;
const READY_MS = 1_000;
const WORKER_DEFAULTS = {
  concurrency: 16,
  lockDuration: 5_000,
  stalledInterval: 5_000,
  removeOnComplete: { count: 0 },
  removeOnFail: { count: 1_000 },
};

/** What this process has fetched, until the store has decided. */
interface OpenJob {
  readonly job: Job;
  readonly offer: Offer;
}

/**
 * Lets BullMQ deliver tasks, for its rate limits, schedulers and dashboards.
 *
 * @returns The engine. Close it to put unfinished work back.
 * @throws {@link SettingsError} when an option is invalid.
 *
 * @example
 * ```ts
 * import { createBullmqEngine } from '@whoa/bullmq';
 * import { createRunner } from '@whoa/tasks';
 * const engine = createBullmqEngine({ store, queue, agents: ['assistant'] });
 * const runner = createRunner({ store, agents: { assistant: agent } });
 * await engine.serve(runner, { concurrency: 20, limiter: { max: 10, duration: 1_000 } });
 * ```
 */
export function createBullmqEngine(options: BullmqEngineOptions): BullmqEngine {
  return new Engine(
    settings.readSettings<BullmqEngineOptions>(options, {
      store: settings.required(settings.having('a task store', 'create', 'setEngine', 'noteOffered')),
      queue: settings.required(settings.having('a BullMQ queue', 'addBulk', 'toKey')),
      agents: settings.required(settings.listOf(settings.nonEmptyText)),
      order: settings.oneOf('tenants', 'jobs'),
    }),
  );
}

class Engine implements BullmqEngine, OfferSource {
  readonly #options: BullmqEngineOptions;
  /** How the store knows this engine. */
  readonly #name: string;
  readonly #offers: OfferQueue;
  readonly #pending: OpenJob[] = [];
  /** Jobs whose takes have not been answered. */
  readonly #asked = new Map<Offer, OpenJob>();
  #watching: AsyncDisposable | undefined;
  #sentinel: Disposable | undefined;
  #served: { readonly runner: Runner; readonly worker: Worker; readonly library: Library } | undefined;
  #loop: JobLoop | undefined;
  #isServing = false;
  #isClosed = false;
  #agents: ReadonlySet<string> = new Set();
  #wake: () => void = () => {};
  #isWaking = false;
  #room = 0;
  #creating = 0;
  /** Jobs that are being ended or put back. */
  readonly #ending = new Set<Promise<unknown>>();

  readonly #report = (error: unknown): void => {
    if (!this.#isClosed) this.#options.queue.emit('error', error as Error);
  };

  constructor(options: BullmqEngineOptions) {
    this.#options = options;
    const { queue } = options;
    this.#name = `bullmq ${queue.toKey('')}`;
    this.#offers = new OfferQueue(options, this.#report);
  }

  async start(): Promise<void> {
    const { store, agents } = this.#options;
    // First: what becomes ready once the store knows the engine must be offered.
    this.#watching ??= await store.watch({ offers: true }, (hint) => {
      if (hint.type === 'offer') this.#offers.add(hint.task);
    });
    for (const agent of agents) this.#require(agent, await store.setEngine(agent, this.#name));
  }

  async serve(runner: Runner, options: OfferWorkerOptions = {}): Promise<void> {
    if (this.#isClosed || this.#isServing) {
      throw new Error('serve: this engine is already serving or was closed; create another engine');
    }
    this.#isServing = true;
    try {
      const library = await loadLibrary();
      await this.start();
      if (this.#isClosed) return;
      const { queue } = this.#options;
      const { connection, prefix = 'bull' } = queue.opts as WorkerOptions;
      const given = { connection, prefix, ...WORKER_DEFAULTS, ...options, ...FIXED };
      const worker = new library.Worker(queue.name, null, given);
      worker.on('error', this.#report);
      this.#served = { runner, worker, library };
      await runner.serve({ concurrency: given.concurrency, offers: this });
      if (this.#isClosed) return;
      worker.startStalledCheckTimer().catch(this.#report);
      const room = (): number => this.#room - this.#pending.length - this.#asked.size - this.#creating;
      this.#loop = new JobLoop({ worker, queue, room, onJob: (job) => this.#start(job), onError: this.#report });
      this.#sentinel = watchForLoss(queue, { onLost: () => this.#offerAll(), onError: this.#report });
    } catch (error) {
      const { worker } = this.#served ?? {};
      this.#served = undefined;
      this.#isServing = false;
      await worker?.close();
      throw error;
    }
  }

  async isReady(): Promise<boolean> {
    let status = '';
    const client = this.#options.queue.getBackend().client;
    await waitAtMost(client.then((one) => void (status = one.status)).catch(this.#report), READY_MS);
    return status === 'ready' && !this.#isClosed;
  }

  async close(mode: StopMode = 'graceful'): Promise<void> {
    this.#isClosed = true;
    this.#sentinel?.[Symbol.dispose]();
    const { worker, runner } = this.#served ?? {};
    const stopped = this.#loop?.stop(CLOSE_MS);
    for (const { job } of this.#pending.splice(0)) this.#end(this.#putBack(job));
    await runner?.stop(mode);
    for (const { job } of this.#asked.values()) this.#end(this.#putBack(job));
    await stopped;
    // The tasks that were handed back are offered to others.
    await waitAtMost(Promise.all([...this.#ending, this.#offers.flushed()]), CLOSE_MS);
    await waitAtMost(Promise.resolve(worker?.close()), CLOSE_MS);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close('now');
    await this.#watching?.[Symbol.asyncDispose]();
    await waitAtMost(this.#offers.flushed(), CLOSE_MS);
  }

  connect({ agents, wake }: Parameters<OfferSource['connect']>[0]): void {
    this.#agents = new Set(agents);
    this.#wake = wake;
  }

  next(limit: number): readonly Offer[] {
    const jobs = this.#pending.splice(0, limit);
    for (const job of jobs) this.#asked.set(job.offer, job);
    return jobs.map(({ offer }) => offer);
  }

  settle(offers: readonly Offer[], results?: readonly OfferResult[]): void {
    const again: OpenJob[] = [];
    const ended: [OpenJob, OfferResult][] = [];
    for (const [index, offer] of offers.entries()) {
      const job = this.#asked.get(offer);
      this.#asked.delete(offer);
      if (job === undefined) continue;
      const result = results?.[index] ?? 'later';
      if (result !== 'later') ended.push([job, result]);
      else if (this.#isClosed) this.#end(this.#putBack(job.job));
      else again.push(job);
    }
    this.#pending.unshift(...again);
    if (again.length > 0 && results !== undefined) this.#wakeSoon();
    if (ended.length > 0) this.#end(this.#endTaken(ended));
  }

  repeat(tasks: Parameters<OfferSource['repeat']>[0]): void {
    this.#offers.repeat(tasks).catch(this.#report);
  }

  setRoom(room: number): void {
    this.#room = room;
    this.#loop?.wake();
  }

  /** Lets the store decide what a job starts. Nothing but other data would help a wrong job: it fails without retries. */
  #start(job: Job): void {
    try {
      const data = readJob(job.data);
      if ('task' in data) this.#end(this.#create(job, data));
      else if (this.#isClosed || !this.#agents.has(data.agent)) this.#end(this.#putBack(job));
      else {
        this.#pending.push({ job, offer: data });
        this.#wakeSoon();
      }
    } catch (error) {
      this.#end(this.#fail(job, error));
    }
  }

  /** Ends the jobs that the store has decided. Tickets of which more wait are added first: this process may die in between. */
  async #endTaken(jobs: readonly (readonly [OpenJob, OfferResult])[]): Promise<void> {
    const more = jobs.filter(([, result]) => result === 'more').map(([{ offer }]) => offer);
    const adding = this.#offers.addJobs(more.map((offer) => createTicket(offer, this.#offers.nextTicket())));
    const failed = await adding.catch((error: unknown) => ({ error }));
    if (failed) this.#report(failed.error);
    const end = ([{ job }, result]: readonly [OpenJob, OfferResult]): Promise<unknown> =>
      failed && result === 'more' ? this.#putBack(job) : job.moveToCompleted(result, job.token!, false);
    await Promise.all(jobs.map(end));
  }

  async #fail(job: Job, error: unknown): Promise<void> {
    const { UnrecoverableError } = this.#served!.library;
    const isWrong = error instanceof TypeError || error instanceof RangeError;
    await job.moveToFailed(isWrong ? new UnrecoverableError(error.message) : (error as Error), job.token!, false);
  }

  /** What is lost here is handed out again when its lock expires. */
  #end(work: Promise<unknown>): void {
    const ending = work.catch(this.#report).finally(() => {
      this.#ending.delete(ending);
      this.#loop?.wake();
    });
    this.#ending.add(ending);
  }

  /** Jobs that arrive together are asked for together. */
  #wakeSoon(): void {
    if (this.#isWaking) return;
    this.#isWaking = true;
    setImmediate(() => {
      this.#isWaking = false;
      this.#wake();
    });
  }

  /** Creates the task of a job, under a key that is the same at every delivery. It is then offered as any other. */
  async #create(job: Job, { task, policy }: Extract<JobData, { task: unknown }>): Promise<void> {
    const { store, queue } = this.#options;
    const key = task.key ?? `bullmq ${queue.name} ${job.id}`;
    this.#creating++;
    try {
      const receipt = await store.create({ ...task, key }, policy && { policy });
      if (!('task' in receipt)) throw new Error(`The store did not create the job's task: ${receipt.result}`);
      await job.moveToCompleted('created', job.token!, false);
    } catch (error) {
      await this.#fail(job, error);
    } finally {
      this.#creating--;
    }
  }

  /** Returns a job to the queue: for another worker, or for this one a little later. */
  async #putBack(job: Job): Promise<void> {
    if (this.#isClosed) await job.moveToWait(job.token);
    else await job.moveToDelayed(Date.now() + RETRY_MS, job.token);
  }

  /** The queue lost its jobs: everything that waits is offered again. */
  async #offerAll(): Promise<void> {
    const { store, agents } = this.#options;
    for (const agent of agents) {
      const { now } = this.#require(agent, await store.setEngine(agent, this.#name));
      this.#require(agent, await store.setEngine(agent, this.#name, { lostBefore: now }));
    }
  }

  #require(agent: string, receipt: Awaited<ReturnType<TaskStore['setEngine']>>): { readonly now: number } {
    if (receipt.result === 'set') return receipt;
    throw new SettingsError(
      'agents',
      `'${agent}' is delivered by another engine, '${receipt.engine}'; take it back first: whoa engine off ${agent}`,
    );
  }
}
