import type { Json } from '@whoa/core';
import type { Batch, ClaimRef, Orders } from '../../delivery.ts';
import { JournalFullError, JournalGapError, LeaseLostError, QuestionRefusedError } from '../../errors.ts';
import type { QuestionClose } from '../../question.ts';
import type { TaskActivity } from '../../task.ts';
import type { WorkerContext } from '../worker-context.ts';
import { entryFor, withEntry } from './entry.ts';
import { createJournalBudget, type FittedEntries, fitEntries, type JournalBudget } from './journal-budget.ts';

/** An agent's events that show progress: earlier worker crashes no longer count against the task. */
const PROGRESS: ReadonlySet<string> = new Set(['turn-end', 'call-end']);
/** How long an event may wait while no client is reading. */
const UNWATCHED_FLUSH_MS = 5_000;

export interface JournalOptions {
  readonly context: WorkerContext;
  readonly claim: ClaimRef;
  /** The current last position. */
  readonly position: number;
  /** The current size. */
  readonly bytes: number;
  /** What the task has done so far. Each write includes it. */
  readonly activity: () => TaskActivity | undefined;
  /** Called before each write: the claim may be over by the clock alone, or must be checked with the store first. */
  readonly onWrite: () => Promise<void> | undefined;
  readonly onOrders: (orders: Orders) => void;
  readonly onDisconnect: (error: LeaseLostError) => void;
  /** The budget is almost used up: stop the work. */
  readonly onFull: (error: JournalFullError) => void;
}

/** What the next write contains. */
interface Waiting {
  readonly events: readonly Json[];
  readonly done: readonly number[];
  readonly closes: readonly QuestionClose[];
}

/** What is written only if the store allows it. */
interface Together extends Pick<Batch, 'asks' | 'closes'> {
  readonly events: readonly Json[];
}

const NO_CHANGES: Required<Pick<Batch, 'asks' | 'closes'>> = { asks: [], closes: [] };
const ignore = (): void => {};

/** Writes a task's events in order: important ones immediately, the others a little later in batches. */
export class Journal {
  readonly #options: JournalOptions;
  #budget: JournalBudget;
  #waiting: Json[] = [];
  #done: number[] = [];
  #closes: QuestionClose[] = [];
  #timer: Disposable | undefined;
  #watched = false;
  #writing: Promise<void> | undefined;
  #lost: LeaseLostError | undefined;
  /** Set when an entry that had to be written was not. */
  #dropped: JournalFullError | undefined;
  /** The work made progress since the last write. */
  #progress = false;

  constructor(options: JournalOptions) {
    this.#options = options;
    const { position, bytes, context } = options;
    this.#budget = createJournalBudget({ position, bytes, maxBytes: context.store.maxJournalBytes });
  }

  /** Adds an event; it is written a little later. */
  add(event: object, isProgress: boolean = PROGRESS.has((event as { type?: string }).type ?? '')): void {
    if (this.#lost !== undefined) return;
    if (isProgress) this.#progress = true;
    this.#waiting = withEntry(this.#waiting, entryFor(event));
    this.#schedule();
  }

  /** Sets whether a client is reading. */
  watch(watched: boolean): void {
    if (watched === this.#watched) return;
    this.#watched = watched;
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    if (this.#waiting.length > 0) this.#schedule();
  }

  #schedule(): void {
    const { world, flushIntervalMs } = this.#options.context;
    this.#timer ??= world.clock.setTimer(this.#watched ? flushIntervalMs : UNWATCHED_FLUSH_MS, () =>
      this.scheduleFlush(),
    );
  }

  /** Marks a command as done, if there was one, and writes now. */
  done(number: number | undefined): void {
    if (number !== undefined) this.#done.push(number);
    this.scheduleFlush();
  }

  /** Writes now; callers do not wait for it. */
  scheduleFlush(): void {
    // Callers that need the result await `flush`, and `onDisconnect` has been called.
    this.flush().catch(() => {});
  }

  /** Closes questions with the events added so far. */
  closeQuestions(closes: readonly QuestionClose[]): void {
    this.#closes.push(...closes);
  }

  /** Resolves when everything added so far is in the store. Rejects with `LeaseLostError`. */
  async flush(): Promise<void> {
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    await this.exclusively(async () => {
      if (this.#waiting.length > 0 || this.#done.length > 0) await this.#write(this.#takeWaiting());
    });
  }

  /**
   * Writes these events and changes questions in one step, after everything added so far. Throws `QuestionRefusedError`
   * if the store does not allow it, and `JournalFullError` if there is no room; then none of these events was written.
   */
  async writeWith(events: readonly object[], questions: Pick<Batch, 'asks' | 'closes'>): Promise<void> {
    await this.exclusively(async () => {
      const refused = await this.#write(this.#takeWaiting(), { events: events.map(entryFor), ...questions });
      if (refused !== undefined) throw refused;
    });
    if (this.#dropped !== undefined) throw this.#dropped;
  }

  /** Runs something while nothing is written. Throws `LeaseLostError`. */
  async exclusively<T>(work: (position: number) => Promise<T>): Promise<T> {
    while (this.#writing !== undefined) await this.#writing;
    this.#throwIfLost();
    const working = work(this.#budget.position);
    const settled = working.then(ignore, ignore);
    this.#writing = settled;
    try {
      return await working;
    } finally {
      // Don't clear this inside the work: work that ends immediately would clear it before it is set.
      if (this.#writing === settled) this.#writing = undefined;
      this.#throwIfLost();
    }
  }

  #takeWaiting(): Waiting {
    const taken = { events: this.#waiting, done: this.#done, closes: this.#closes };
    this.#waiting = [];
    this.#done = [];
    this.#closes = [];
    return taken;
  }

  #throwIfLost(): void {
    if (this.#lost !== undefined) throw this.#lost;
  }

  /** Flushes, and throws `JournalFullError` if an entry was dropped: don't start work that the journal cannot show. */
  async flushWhole(): Promise<void> {
    await this.flush();
    if (this.#dropped !== undefined) throw this.#dropped;
  }

  /** Gives up on the store: anything unwritten is dropped. */
  close(error: LeaseLostError): void {
    this.#lost ??= error;
    this.#timer?.[Symbol.dispose]();
  }

  /**
   * Writes a batch, together with more that the store may refuse. Never rejects. A batch may be sent twice: the store
   * counts it once. Returns why the rest was written without `together`.
   */
  async #write(waiting: Waiting, together: Together = { events: [] }): Promise<QuestionRefusedError | undefined> {
    const { context, claim, onOrders, onWrite } = this.#options;
    const activity = this.#options.activity();
    const known = { done: waiting.done, resetsAttempts: this.#progress, ...(activity !== undefined && { activity }) };
    this.#progress = false;
    let fitted = fitEntries([...waiting.events, ...together.events], this.#budget);
    const closes = [...waiting.closes, ...(together.closes ?? [])];
    let questions: Required<Pick<Batch, 'asks' | 'closes'>> = { asks: together.asks ?? [], closes };
    let refused: QuestionRefusedError | undefined;
    while (this.#lost === undefined) {
      const { events, replaces } = fitted;
      // A batch without an event changes no question: the store would not recognise that it arrived twice.
      const changes = events.length === 0 ? {} : questions;
      try {
        const asking = onWrite();
        if (asking !== undefined) await asking;
        if (this.#lost !== undefined) return undefined;
        const batch = { after: this.#budget.position, events, replaces, ...known, ...changes };
        const orders = await context.store.append(claim, batch);
        this.#budget = fitted.budget;
        this.#noteFull(fitted);
        onOrders(orders);
        return refused;
      } catch (error) {
        if (error instanceof QuestionRefusedError) {
          refused = error;
          questions = NO_CHANGES;
          fitted = fitEntries(waiting.events, this.#budget);
        } else if (error instanceof JournalFullError) {
          // The error has the store's own figure of the journal size.
          questions = NO_CHANGES;
          fitted = { ...fitEntries([], this.#budget), isFull: true, isLossy: true };
        } else if (error instanceof LeaseLostError) this.#lose(error);
        // The store was restored to an earlier state: it will never have what we wrote.
        else if (error instanceof JournalGapError)
          this.#lose(new LeaseLostError(claim.id, claim.epoch, { cause: error }));
        else await context.retryAfter(error);
      }
    }
    return undefined;
  }

  #noteFull({ isFull, isLossy, budget }: FittedEntries): void {
    if (!isFull) return;
    const error = new JournalFullError(this.#options.claim.id, budget.bytes, budget.maxBytes);
    if (isLossy) this.#dropped ??= error;
    this.#options.onFull(error);
  }

  #lose(error: LeaseLostError): void {
    this.#lost ??= error;
    this.#options.onDisconnect(error);
  }
}
