import type { TaskStore } from '@whoa/tasks';
import type { Queue } from 'bullmq';
import { createJobs, MAX_TICKETS, type NewJob, type OfferedTask, type Order } from './offers.ts';

/** Options of an engine. */
export interface BullmqEngineOptions {
  readonly store: TaskStore;
  /** The queue of the offers. It stays yours: close it after the engine. Its `error` event reports what went wrong. */
  readonly queue: Queue;
  /** The agents whose tasks go through the queue. No other engine may deliver them. */
  readonly agents: readonly string[];
  /** Whether tenants take turns (`tenants`, the default), or each task is a job with its priority and delay (`jobs`). */
  readonly order?: Order | undefined;
}

/** How many tasks wait for a lost connection. Those beyond are found by the sweep of lost offers. */
const MAX_WAITING = 10_000;
const MAX_BULK = 1_000;

/** Adds jobs for tasks, those that come meanwhile together. One request at a time. */
export class OfferQueue {
  readonly #options: BullmqEngineOptions;
  readonly #onError: (error: unknown) => void;
  #waiting: OfferedTask[] = [];
  #flushing: Promise<void> | undefined;
  #tickets = 0;

  constructor(options: BullmqEngineOptions, onError: (error: unknown) => void) {
    this.#options = options;
    this.#onError = onError;
  }

  /** So that as many of a tenant's tickets can wait as tasks can start. */
  readonly nextTicket = (): number => this.#tickets++ % MAX_TICKETS;

  /** Offers a task soon. */
  add(task: OfferedTask): void {
    if (!this.#options.agents.includes(task.agent) || this.#waiting.length >= MAX_WAITING) return;
    this.#waiting.push(task);
    this.#flushing ??= Promise.resolve().then(() => this.#flush());
  }

  /** Resolves when what was added has been offered, or could not be. */
  readonly flushed = async (): Promise<void> => this.#flushing;

  /** Offers tasks again whose offers were lost. Only then may they be noted: the queue may be away. */
  async repeat(tasks: readonly OfferedTask[]): Promise<void> {
    const { agents, store } = this.#options;
    const own = tasks.filter(({ agent }) => agents.includes(agent));
    await this.addJobs(createJobs(own, this.#options.order, this.nextTicket));
    await store.noteOffered(own.map(({ id }) => id));
  }

  async addJobs(jobs: NewJob[]): Promise<void> {
    for (let i = 0; i < jobs.length; i += MAX_BULK) await this.#options.queue.addBulk(jobs.slice(i, i + MAX_BULK));
  }

  async #flush(): Promise<void> {
    while (this.#waiting.length > 0) {
      const tasks = this.#waiting;
      this.#waiting = [];
      // What is lost here is found by the sweep.
      await this.addJobs(createJobs(tasks, this.#options.order, this.nextTicket)).catch(this.#onError);
    }
    this.#flushing = undefined;
  }
}
