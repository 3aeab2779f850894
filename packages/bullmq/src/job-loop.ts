import { waitAtMost } from '@whoa/core/internal';
import type { Job, Queue, Worker } from 'bullmq';

/** How many jobs are fetched at the same time. */
const MAX_FETCHED = 32;
/** How long to wait before jobs are fetched again after an error, and at most while a rate limit forbids it. */
const RETRY_MS = 100;
const MAX_LIMITED_MS = 1_000;
/** BullMQ returns nothing sooner only while a rate limit forbids it: otherwise it waits for a job. */
const SOON_MS = 5;

export interface JobLoopOptions {
  readonly worker: Worker;
  readonly queue: Queue;
  /** How many jobs can be used now. */
  readonly room: () => number;
  readonly onJob: (job: Job) => void;
  readonly onError: (error: unknown) => void;
}

/**
 * Fetches jobs while there is room for them. BullMQ's own loop fetches them one by one, and the next ones only when one has
 * ended; here those that wait are fetched together.
 */
export class JobLoop {
  readonly #options: JobLoopOptions;
  readonly #running: Promise<void>;
  readonly #stopped = Promise.withResolvers<void>();
  #isStopped = false;
  #changed = Promise.withResolvers<void>();
  #fetched = 0;

  constructor(options: JobLoopOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  /** Call it when there may be more room. */
  wake(): void {
    this.#changed.resolve();
  }

  /** Fetches no more. Resolves when the last ones have arrived, or after `ms`. */
  async stop(ms: number): Promise<void> {
    this.#isStopped = true;
    this.#stopped.resolve();
    this.wake();
    const waiting = this.#options.worker.getBackend().disconnectBlocking(true);
    await waitAtMost(Promise.all([waiting.catch(this.#options.onError), this.#running]), ms);
  }

  async #run(): Promise<void> {
    const { room, onJob, onError } = this.#options;
    // How many came together since there was none, and how many the last time.
    let [burst, expected, more, empty] = [0, 0, 1, 0];
    while (!this.#isStopped) {
      const isMore = burst >= expected;
      const limit = Math.min(burst === 0 ? 1 : isMore ? more : expected - burst, MAX_FETCHED, room());
      if (limit <= 0) {
        await this.#changed.promise;
        this.#changed = Promise.withResolvers();
        continue;
      }
      try {
        const from = performance.now();
        const jobs = await Promise.all(Array.from({ length: limit }, () => this.#fetch(burst === 0)));
        const found = jobs.filter((job) => job !== undefined);
        for (const job of found) onJob(job);
        burst += found.length;
        empty = burst > 0 || performance.now() - from > SOON_MS ? 0 : empty + 1;
        if (empty > 1) await this.#waitForLimit();
        more = isMore && burst > 0 ? Math.min(MAX_FETCHED, more * 2) : 1;
        if (found.length < limit) [expected, burst, more] = [burst, 0, 1];
      } catch (error) {
        onError(error);
        await waitAtMost(this.#stopped.promise, RETRY_MS);
      }
    }
  }

  /** `block`: waits for a job if there was none the last time. */
  #fetch(block: boolean): Promise<Job | undefined> {
    const { worker } = this.#options;
    return worker.getNextJob(`${worker.id}:${this.#fetched++}`, { block });
  }

  async #waitForLimit(): Promise<void> {
    const { queue, worker } = this.#options;
    const ms = await queue.getRateLimitTtl(worker.opts.limiter?.max);
    await waitAtMost(this.#stopped.promise, Math.min(Math.max(ms, SOON_MS), MAX_LIMITED_MS));
  }
}
