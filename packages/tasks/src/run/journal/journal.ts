import type { Hint } from '../../bus/hint.ts';
import type { WorkerContext } from '../../delivery/worker-context.ts';
import type { Batch, ClaimRef, Orders, WordSource } from '../../delivery/worker-store.ts';
import { JournalFullError, JournalGapError, LeaseLostError, QuestionRefusedError } from '../../errors.ts';
import type { QuestionClose } from '../../question.ts';
import type { TaskActivity } from '../../task.ts';
import { entryFor, type SaidEvent, withEntry } from './entry.ts';
import { createJournalBudget, type FittedEntries, fitEntries, type JournalBudget } from './journal-budget.ts';
import { LiveWords } from './live-words.ts';

/** An agent's events that show progress: earlier worker crashes no longer count against the task. */
const PROGRESS: ReadonlySet<string> = new Set(['turn-end', 'call-end']);
/** How long an event may wait for others to be written with it: while a client is reading, and otherwise. */
const WATCHED_FLUSH_MS = 750;
const UNWATCHED_FLUSH_MS = 5_000;
/** The first write of a claim. Its answer names readers that came while the claim was given: neither knew of the other. */
const FIRST_FLUSH_MS = 200;

export interface JournalOptions {
  readonly context: WorkerContext;
  readonly claim: ClaimRef;
  readonly tenant: string;
  /** Who reads, as the store knew when it gave the claim. */
  readonly readers: readonly string[];
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
  /** The store did not close these questions: the state of one has changed. */
  readonly onRefused: (closes: readonly QuestionClose[]) => void;
}

/** What the next write contains. */
class Waiting {
  events: readonly SaidEvent[] = [];
  readonly done: number[] = [];
  readonly declined: number[] = [];
  readonly closes: QuestionClose[] = [];
}

/** What is written only if the store allows it. */
interface Together extends Pick<Batch, 'asks' | 'closes'> {
  readonly events: readonly SaidEvent[];
}

const TOO_LARGE = 'it is too large to be shown in full, so no one can be asked';
const ignore = (): void => {};

/** Writes a task's events in order: important ones immediately, the others a little later in batches. */
export class Journal {
  readonly #options: JournalOptions;
  #budget: JournalBudget;
  #waiting = new Waiting();
  #timer: Disposable | undefined;
  readonly #words: LiveWords;
  readonly #source: WordSource;
  #readers: readonly string[] = [];
  /** Readers that came while the present write was in progress: its answer may not know them. */
  readonly #newReaders = new Set<string>();
  #writing: Promise<void> | undefined;
  #hasWritten = false;
  #lost: LeaseLostError | undefined;
  /** Set when an entry that had to be written was not. */
  #dropped: JournalFullError | undefined;
  /** The work made progress since the last write. */
  #progress = false;

  constructor(options: JournalOptions) {
    this.#options = options;
    const { position, bytes, context, claim, tenant } = options;
    this.#budget = createJournalBudget({ position, bytes, maxBytes: context.store.maxJournalBytes });
    this.#words = new LiveWords(claim, position);
    const next = (): Hint | undefined => {
      const frame = this.#lost === undefined ? this.#words.next(context.world.clock.now()) : undefined;
      return frame && { type: 'frame', id: claim.id, tenant, frame };
    };
    this.#source = { readers: () => this.#readers, next };
    this.#setReaders(options.readers);
  }

  /** Adds an event; it is written a little later. */
  add(event: object, isProgress: boolean = PROGRESS.has((event as { type?: string }).type ?? '')): void {
    if (this.#lost !== undefined) return;
    if (isProgress) this.#progress = true;
    const { said, isTooLarge } = this.#words.add(entryFor(event), this.#options.context.world.clock.now());
    this.#waiting.events = withEntry(this.#waiting.events, said);
    if (isTooLarge) this.scheduleFlush();
    this.#schedule();
    this.#show();
  }

  /** A client has begun to read: it finds in the journal what was said before, and sees what is said from now on. */
  watch(reader: string): void {
    this.#newReaders.add(reader);
    this.#setReaders([...this.#readers, reader]);
    this.#flushLater();
  }

  #setReaders(readers: readonly string[]): void {
    this.#readers = [...new Set([...readers, ...this.#newReaders])];
    this.#words.watch(this.#readers.length > 0);
  }

  #show(): void {
    if (this.#readers.length > 0) this.#options.context.store.show(this.#source);
  }

  #schedule(): void {
    const unwatchedMs = this.#hasWritten ? UNWATCHED_FLUSH_MS : FIRST_FLUSH_MS;
    const delayMs = this.#readers.length > 0 ? WATCHED_FLUSH_MS : unwatchedMs;
    this.#timer ??= this.#options.context.world.clock.setTimer(delayMs, () => this.#flushLater());
  }

  /** Marks a command as done, if there was one, and writes now. */
  done(number: number | undefined): void {
    if (number !== undefined) this.#waiting.done.push(number);
    this.scheduleFlush();
  }

  /** Leaves a message that the run cannot read to the task that waits with it, and writes now. */
  decline(number: number): void {
    this.#waiting.declined.push(number);
    this.scheduleFlush();
  }

  /** Writes now; callers do not wait for it. */
  scheduleFlush(): void {
    // Callers that need the result await `flush`, and `onDisconnect` has been called.
    this.flush().catch(ignore);
  }

  /** Closes questions with the events added so far. */
  closeQuestions(closes: readonly QuestionClose[]): void {
    this.#waiting.closes.push(...closes);
  }

  /** Resolves when everything added so far is in the store. Rejects with `LeaseLostError`. */
  async flush(): Promise<void> {
    this.#words.hold();
    await this.#flushNow();
  }

  #flushLater(): void {
    this.#flushNow().catch(ignore);
  }

  /** Writes what waits, which readers may have seen. */
  async #flushNow(): Promise<void> {
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    await this.exclusively(async () => {
      const { events, done } = this.#waiting;
      if (events.length > 0 || done.length > 0) await this.#write(this.#takeWaiting());
    });
  }

  /**
   * Writes these events and changes questions in one step, after everything added so far. Throws `QuestionRefusedError`
   * if the store does not allow it, `RangeError` if a question would be cut, and `JournalFullError` if there is no room;
   * then none of these events was written.
   */
  async writeWith(events: readonly object[], questions: Pick<Batch, 'asks' | 'closes'>): Promise<void> {
    await this.exclusively(async () => {
      const together = events.map((event) => this.#words.number(entryFor(event)));
      this.#words.hold();
      const refused = await this.#write(this.#takeWaiting(), { events: together, ...questions });
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
    const taken = this.#waiting;
    this.#waiting = new Waiting();
    this.#words.startWrite();
    this.#newReaders.clear();
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
  async #write(waiting: Waiting, together: Together = { events: [] }): Promise<Error | undefined> {
    const { context, claim, onOrders, onWrite, onRefused } = this.#options;
    const activity = this.#options.activity();
    const settled = this.#words.said;
    const { done, declined } = waiting;
    const known = { done, declined, resetsAttempts: this.#progress, ...(activity !== undefined && { activity }) };
    this.#progress = false;
    let fitted = fitEntries([...waiting.events, ...together.events], this.#budget);
    let { asks = [], closes = [] } = together;
    let added: readonly QuestionClose[] = waiting.closes;
    let refused: Error | undefined;
    const refuse = (error: Error): void => {
      refused = error;
      onRefused(closes);
      [asks, closes] = [[], []];
      fitted = fitEntries(waiting.events, this.#budget);
    };
    // No one must answer what they have not seen in full.
    if (asks.length > 0 && !together.events.every(({ event }) => fitted.events.some((one) => one.event === event)))
      refuse(new RangeError(TOO_LARGE));
    while (this.#lost === undefined) {
      const { events, replaces } = fitted;
      // A batch without an event changes no question: the store would not recognise that it arrived twice.
      const changes = events.length === 0 ? {} : { asks, closes: [...added, ...closes] };
      try {
        const asking = onWrite();
        if (asking !== undefined) await asking;
        if (this.#lost !== undefined) return undefined;
        const texts = { events: events.map(({ event }) => event), said: events.map(({ said }) => said) };
        const batch = { after: this.#budget.position, ...texts, replaces, ...known, ...changes };
        const orders = await context.store.append(claim, batch);
        this.#hasWritten = true;
        this.#budget = fitted.budget;
        this.#words.endWrite({ settled, kept: events.at(-1)?.said, position: fitted.budget.position });
        const wasRead = this.#readers.length > 0;
        this.#setReaders(orders.readers);
        // What was said during this write is in no frame.
        if (!wasRead && this.#readers.length > 0) this.#flushLater();
        this.#show();
        this.#recordFull(fitted);
        onOrders(orders);
        return refused;
      } catch (error) {
        if (error instanceof QuestionRefusedError && added.length > 0) {
          // One whose call is over may have been answered meanwhile. That must not stop the others.
          onRefused(added);
          added = [];
        } else if (error instanceof QuestionRefusedError) refuse(error);
        else if (error instanceof JournalFullError) {
          // The error has the store's own figure of the journal size.
          [asks, closes, added] = [[], [], []];
          fitted = { ...fitEntries([], this.#budget), isFull: true, isLossy: true };
        } else if (error instanceof LeaseLostError) this.#onLeaseLost(error);
        // The store was restored to an earlier state: it will never have what we wrote.
        else if (error instanceof JournalGapError)
          this.#onLeaseLost(new LeaseLostError(claim.id, claim.epoch, { cause: error }));
        else await context.retryAfter(error);
      }
    }
    return undefined;
  }

  #recordFull({ isFull, isLossy, budget }: FittedEntries): void {
    if (!isFull) return;
    const error = new JournalFullError(this.#options.claim.id, budget.bytes, budget.maxBytes);
    if (isLossy) this.#dropped ??= error;
    this.#options.onFull(error);
  }

  #onLeaseLost(error: LeaseLostError): void {
    this.#lost ??= error;
    this.#options.onDisconnect(error);
  }
}
