import type { OfferSource } from './offer-source.ts';
import type { Sweeper } from './sweeper.ts';
import type { WorkerContext } from './worker-context.ts';
import type { WorkerSession } from './worker-session.ts';
import type { OfferResult, TakenTask } from './worker-store.ts';

export interface TakeLoopOptions {
  readonly session: WorkerSession;
  readonly agents: readonly string[];
  readonly concurrency: number;
  /** How many tasks this worker holds. */
  readonly live: () => number;
  readonly onTaken: (taken: TakenTask) => void;
  readonly sweeper: Sweeper;
  /** Of an engine that delivers tasks to this process. */
  readonly offers?: OfferSource | undefined;
}

/** The maximum `limit` of a take, because it is one step on the server. */
const MAX_TAKE = 100;

/**
 * Takes tasks while there is free capacity: at the start, on a hint, when a task ended and more may be ready, when a
 * task becomes due, and at intervals.
 */
export class TakeLoop implements Disposable {
  readonly #context: WorkerContext;
  readonly #options: TakeLoopOptions;
  /** There may be ready tasks. */
  #isWanted = true;
  #isTaking = false;
  #dueTimer: Disposable | undefined;
  /** The number of tasks that takes in progress may return. */
  #expected = 0;
  #poll: Disposable | undefined;
  #isPumping = false;
  #isStopped = false;

  constructor(context: WorkerContext, options: TakeLoopOptions) {
    this.#context = context;
    this.#options = options;
    options.offers?.connect({ agents: options.agents, wake: () => this.wake() });
    this.#pollAgain();
  }

  /** Takes as many tasks as there is capacity for. */
  pump(): void {
    this.#options.offers?.setRoom(this.#isStopped ? 0 : this.#options.concurrency - this.#options.live());
    if (!this.#isWanted || this.#isTaking || this.#isStopped || this.#free() <= 0) return;
    this.#isWanted = false;
    this.#isTaking = true;
    this.#context.background(this.#take());
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
  wake(): void {
    this.#isWanted = true;
    this.pump();
  }

  [Symbol.dispose](): void {
    this.#isStopped = true;
    this.#poll?.[Symbol.dispose]();
    this.#dueTimer?.[Symbol.dispose]();
  }

  /** Whether there is no capacity for another task. */
  get isFull(): boolean {
    return this.#options.live() >= this.#options.concurrency;
  }

  #free(): number {
    return this.#options.concurrency - this.#options.live() - this.#expected;
  }

  async #take(): Promise<void> {
    const { session, agents, onTaken, sweeper, offers: source } = this.#options;
    const limit = Math.min(this.#free(), MAX_TAKE);
    const offers = source?.next(limit);
    let results: readonly OfferResult[] | undefined;
    this.#expected += limit;
    let isExpected = true;
    const arrive = (): void => {
      if (isExpected) this.#expected -= limit;
      isExpected = false;
    };
    try {
      const answer = await session.take(agents, limit, offers);
      arrive();
      if (answer.result !== 'taken') {
        this.#isWanted = true;
        return;
      }
      for (const taken of answer.tasks) onTaken(taken);
      results = answer.offers;
      if (answer.lostOffers !== undefined && answer.lostOffers.length > 0) source?.repeat(answer.lostOffers);
      // A take that returned fewer tasks than asked parked us: a hint comes when there is more.
      if (answer.isRepeat || answer.tasks.length === limit) this.#isWanted = true;
      if (answer.nextReadyAt !== undefined) this.#wakeIn(answer.nextReadyAt - answer.now);
      if (answer.shouldSweep) sweeper.sweepSoon();
    } catch (error) {
      arrive();
      await this.#context.retryAfter(error);
      this.#isWanted = true;
    } finally {
      arrive();
      this.#isTaking = false;
      if (offers !== undefined) source!.settle(offers, results);
      this.pump();
    }
  }

  #wakeIn(ms: number): void {
    this.#dueTimer?.[Symbol.dispose]();
    if (this.#isStopped) return;
    this.#dueTimer = this.#context.world.clock.setTimer(Math.max(1, ms), () => this.wake());
  }

  /** Asks while there is free capacity, in case a hint was lost. */
  #pollAgain(): void {
    const { world, pollIntervalMs } = this.#context;
    const poll = (): void => {
      this.wake();
      this.#pollAgain();
    };
    this.#poll = world.clock.setTimer(pollIntervalMs, poll, { keepAlive: true });
  }
}
