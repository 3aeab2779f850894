import type { TakenTask } from '../../delivery.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { DomainSession } from './domain-session.ts';
import type { Sweeper } from './sweeper.ts';

export interface TakeLoopOptions {
  /** One for each domain of the store. */
  readonly sessions: readonly DomainSession[];
  readonly agents: readonly string[];
  readonly concurrency: number;
  /** How many tasks this worker holds. */
  readonly live: () => number;
  readonly onTaken: (taken: TakenTask) => void;
  readonly sweeper: Sweeper;
}

/** The maximum `limit` of a take, because it is one step on the server. */
const MAX_TAKE = 100;

/**
 * Takes tasks while there is free capacity, one domain after the other: at the start, on a hint, when a task ended and
 * more may be ready, when a task becomes due, and at intervals.
 */
export class TakeLoop implements Disposable {
  readonly #context: WorkerContext;
  readonly #options: TakeLoopOptions;
  /** Domains that may have ready tasks. */
  readonly #wanted: Set<number>;
  readonly #taking = new Set<number>();
  readonly #dueTimers = new Map<number, Disposable>();
  /** The number of tasks that takes in progress may return. */
  #expected = 0;
  #poll: Disposable | undefined;
  #turn = 0;
  #isPumping = false;
  #isStopped = false;

  constructor(context: WorkerContext, options: TakeLoopOptions) {
    this.#context = context;
    this.#options = options;
    this.#wanted = new Set(options.sessions.keys());
    this.#pollAgain();
  }

  /** Takes as many tasks as there is capacity for. */
  pump(): void {
    for (const domain of this.#wanted) {
      if (this.#free() <= 0 || this.#isStopped) return;
      if (this.#taking.has(domain)) continue;
      this.#wanted.delete(domain);
      this.#taking.add(domain);
      this.#context.background(this.#takeFrom(domain));
    }
  }

  /** Call it when a task ended. Tasks that end together, by one response of the store, cause one take. */
  pumpSoon(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    queueMicrotask(() => {
      this.#isPumping = false;
      this.pump();
    });
  }

  /** A task became ready, or may have. */
  wake(domain?: number): void {
    for (const one of domain === undefined ? this.#options.sessions.keys() : [domain]) this.#wanted.add(one);
    this.pump();
  }

  [Symbol.dispose](): void {
    this.#isStopped = true;
    this.#poll?.[Symbol.dispose]();
    for (const timer of this.#dueTimers.values()) timer[Symbol.dispose]();
  }

  /** Whether there is no capacity for another task. */
  get isFull(): boolean {
    return this.#options.live() >= this.#options.concurrency;
  }

  #free(): number {
    return this.#options.concurrency - this.#options.live() - this.#expected;
  }

  async #takeFrom(domain: number): Promise<void> {
    const { sessions, agents, onTaken, sweeper } = this.#options;
    const limit = Math.min(this.#free(), MAX_TAKE);
    this.#expected += limit;
    let isExpected = true;
    const arrive = (): void => {
      if (isExpected) this.#expected -= limit;
      isExpected = false;
    };
    try {
      const answer = await sessions[domain]!.take(agents, limit);
      arrive();
      if (answer.result !== 'taken') {
        this.#wanted.add(domain);
        return;
      }
      for (const taken of answer.tasks) onTaken(taken);
      // A take that returned fewer tasks than asked parked us: a hint comes when there is more.
      if (answer.isRepeat || answer.tasks.length === limit) this.#wanted.add(domain);
      if (answer.nextReadyAt !== undefined) this.#wakeIn(domain, answer.nextReadyAt - answer.now);
      if (answer.shouldSweep) sweeper.sweepSoon(domain);
    } catch (error) {
      arrive();
      await this.#context.retryAfter(error);
      this.#wanted.add(domain);
    } finally {
      arrive();
      this.#taking.delete(domain);
      this.pump();
    }
  }

  #wakeIn(domain: number, ms: number): void {
    this.#dueTimers.get(domain)?.[Symbol.dispose]();
    if (this.#isStopped) return;
    const timer = this.#context.world.clock.setTimer(Math.max(1, ms), () => this.wake(domain));
    this.#dueTimers.set(domain, timer);
  }

  /** Asks while there is free capacity, in case a hint was lost. */
  #pollAgain(): void {
    const { world, pollIntervalMs } = this.#context;
    const poll = (): void => {
      this.#turn = (this.#turn + 1) % this.#options.sessions.length;
      this.wake(this.#turn);
      this.#pollAgain();
    };
    this.#poll = world.clock.setTimer(pollIntervalMs, poll, { keepAlive: true });
  }
}
