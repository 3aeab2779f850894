import { type Json, sleep } from '@whoa/core';
import type { Clock } from '@whoa/core/embed';
import type { ClaimRef, Orders } from '../../delivery.ts';
import { JournalFullError, LeaseLostError } from '../../errors.ts';
import type { TaskStore } from '../../store.ts';
import type { TaskActivity } from '../../task.ts';
import { RETRY_DELAY_MS } from '../retry-delay.ts';
import { entryFor, withEntry } from './entry.ts';
import { createJournalBudget, type FittedEntries, fitEntries, type JournalBudget } from './journal-budget.ts';

/** An agent's events that show progress: earlier worker crashes no longer count against the task. */
const PROGRESS: ReadonlySet<string> = new Set(['turn-end', 'call-end']);
/** How long an event may wait while no client is reading. */
const UNWATCHED_FLUSH_MS = 5_000;

export interface JournalOptions {
  readonly store: TaskStore;
  readonly claim: ClaimRef;
  /** The current last position. */
  readonly position: number;
  /** The current size. */
  readonly bytes: number;
  readonly clock: Clock;
  /** What the task has done so far. Each write includes it. */
  readonly activity: () => TaskActivity | undefined;
  /** How long an event may wait while a client is reading. */
  readonly flushMs: number;
  /** Called before each write: the claim may be over by the clock alone, or must be checked with the store first. */
  readonly onWrite: () => Promise<void> | undefined;
  readonly onOrders: (orders: Orders) => void;
  readonly onLost: (error: LeaseLostError) => void;
  /** The budget is almost used up: stop the work. */
  readonly onFull: (error: JournalFullError) => void;
  readonly onStoreError: (error: unknown) => void;
}

/** Writes a task's events in order: important ones immediately, the others a little later in batches. */
export class Journal {
  readonly #options: JournalOptions;
  #budget: JournalBudget;
  #waiting: Json[] = [];
  #done: number[] = [];
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
    const { position, bytes, store } = options;
    this.#budget = createJournalBudget({ position, bytes, maxBytes: store.maxJournalBytes });
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
    const { clock, flushMs } = this.#options;
    this.#timer ??= clock.setTimer(this.#watched ? flushMs : UNWATCHED_FLUSH_MS, () => this.flushSoon());
  }

  /** Marks a command as done, if there was one, and writes now. */
  done(number: number | undefined): void {
    if (number !== undefined) this.#done.push(number);
    this.flushSoon();
  }

  /** Writes now; callers do not wait for it. */
  flushSoon(): void {
    // Callers that need the result await `flush`, and `onLost` has been called.
    this.flush().catch(() => {});
  }

  /** Resolves when everything added so far is in the store. Rejects with `LeaseLostError`. */
  async flush(): Promise<void> {
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    while (this.#writing !== undefined) await this.#writing;
    this.#throwIfLost();
    if (this.#waiting.length === 0 && this.#done.length === 0) return;
    const writing = this.#write(this.#waiting, this.#done);
    this.#writing = writing;
    this.#waiting = [];
    this.#done = [];
    await writing;
    // Don't clear this inside the write: a write that gives up at once would clear it before it is set.
    if (this.#writing === writing) this.#writing = undefined;
    this.#throwIfLost();
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

  /** Never rejects. A batch may be sent twice: the store counts it once. */
  async #write(waiting: Json[], done: number[]): Promise<void> {
    const { store, claim, onOrders, onWrite } = this.#options;
    const activity = this.#options.activity();
    const known = { done, progress: this.#progress, ...(activity !== undefined && { activity }) };
    this.#progress = false;
    let fitted = fitEntries(waiting, this.#budget);
    while (this.#lost === undefined) {
      const { events, replaces } = fitted;
      try {
        const asking = onWrite();
        if (asking !== undefined) await asking;
        if (this.#lost !== undefined) return;
        const orders = await store.append(claim, { after: this.#budget.position, events, replaces, ...known });
        this.#budget = fitted.budget;
        this.#noteFull(fitted);
        onOrders(orders);
        return;
      } catch (error) {
        // The error has the store's own figure of the journal size.
        if (error instanceof JournalFullError)
          fitted = { ...fitEntries([], this.#budget), isFull: true, isLossy: true };
        else await this.#afterFailure(error);
      }
    }
  }

  #noteFull({ isFull, isLossy, budget }: FittedEntries): void {
    if (!isFull) return;
    const error = new JournalFullError(this.#options.claim.id, budget.bytes, budget.maxBytes);
    if (isLossy) this.#dropped ??= error;
    this.#options.onFull(error);
  }

  async #afterFailure(error: unknown): Promise<void> {
    if (error instanceof LeaseLostError) {
      this.#lost ??= error;
      this.#options.onLost(error);
      return;
    }
    this.#options.onStoreError(error);
    await sleep(RETRY_DELAY_MS, { clock: this.#options.clock });
  }
}
