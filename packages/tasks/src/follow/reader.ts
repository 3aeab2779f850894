import type { CancellationToken } from '@whoa/core';
import { waitUntilLevel } from '@whoa/core/embed';
import type { JournalEntry, TaskRecord } from '../task.ts';
import { retryWhileUnavailable } from './retry-while-unavailable.ts';

/** The maximum number of entries in one read, and that wait for a reader. */
export const MAX_PAGE = 1_000;

export interface ReaderOptions {
  /** Skip everything up to this position. */
  readonly after: number;
  readonly onStoreError?: ((error: unknown) => void) | undefined;
}

/** New entries, and the position up to which there are no others. */
export interface Page {
  readonly entries: readonly JournalEntry[];
  readonly to: number;
}

/** The state that the readers of one task share. */
export interface Reading {
  /**
   * The position up to which readers were given pages; older entries they must read. `undefined` before the first look.
   */
  readonly position: number | undefined;
  /** The task, once it has ended and its whole journal was delivered. */
  readonly end: TaskRecord | undefined;
  readonly failure: { readonly error: unknown } | undefined;
  /** Reads part of the journal. */
  read(after: number): Promise<readonly JournalEntry[]>;
  /** The last reader to leave ends the reading and waits until its cleanup is done. */
  leave(reader: Reader): Promise<void>;
}

/**
 * One reader of a task's journal. While it is keen, it gets each page that is read for all readers. A reader that does
 * not keep up blocks no other reader and buffers nothing: it reads what it missed itself, and is keen again once it has
 * caught up.
 */
export class Reader implements AsyncDisposable {
  readonly #reading: Reading;
  readonly #options: ReaderOptions;
  #pages: Page[] = [];
  #entriesWaiting = 0;
  #isCaughtUp = false;
  /** The last position that it was given. */
  #position = 0;
  #wake = Promise.withResolvers<void>();
  #failure: { readonly error: unknown } | undefined;

  constructor(reading: Reading, options: ReaderOptions) {
    this.#reading = reading;
    this.#options = options;
    if (reading.position !== undefined) this.begin();
  }

  /** Whether its pages, with what it was given, cover everything up to the position of the reading. */
  get isCaughtUp(): boolean {
    return this.#isCaughtUp;
  }

  /** Call it when the end of the journal is first known. A position beyond the end is ignored. */
  begin(): void {
    const { position } = this.#reading;
    this.#position = Math.min(this.#options.after, position!);
    this.#isCaughtUp = this.#position >= position!;
    this.wake();
  }

  receive(page: Page): void {
    if (!this.#isCaughtUp) return;
    const waiting = this.#entriesWaiting + page.entries.length;
    const isBehind = this.#pages.length > 0 && waiting > MAX_PAGE;
    this.#isCaughtUp = !isBehind;
    this.#pages = isBehind ? [] : [...this.#pages, page];
    this.#entriesWaiting = isBehind ? 0 : waiting;
    this.wake();
  }

  wake(): void {
    this.#wake.resolve();
  }

  /** A listener that throws ends the reading for this reader only. */
  reportError(error: unknown): void {
    try {
      this.#options.onStoreError?.(error);
    } catch (thrown) {
      this.#failure = { error: thrown };
      this.wake();
    }
  }

  /** Returns the next entries, or the task when there are no more. */
  async next(token: CancellationToken): Promise<readonly JournalEntry[] | TaskRecord> {
    for (;;) {
      token.throwIfCancelled();
      this.#wake = Promise.withResolvers();
      const page = this.#nextPage() ?? (await this.#catchUp(token));
      if (page !== undefined) {
        const fresh = this.#take(page);
        if (fresh.length > 0) return fresh;
        continue;
      }
      const failure = this.#failure ?? this.#reading.failure;
      if (failure !== undefined) throw failure.error;
      if (this.#isCaughtUp && this.#reading.end !== undefined) return this.#reading.end;
      await waitUntilLevel(this.#wake.promise, token, 'drain');
    }
  }

  #nextPage(): Page | undefined {
    const page = this.#pages.shift();
    if (page !== undefined) this.#entriesWaiting -= page.entries.length;
    return page;
  }

  /** Reads a page that it missed; `undefined` if it missed none. */
  async #catchUp(token: CancellationToken): Promise<Page | undefined> {
    const reading = this.#reading;
    const goal = reading.position;
    if (this.#isCaughtUp || goal === undefined || reading.failure !== undefined) return undefined;
    const onStoreError = (error: unknown): void => this.#options.onStoreError?.(error);
    const entries = await retryWhileUnavailable(() => reading.read(this.#position), { token, onStoreError });
    const to = entries.at(-1)?.position ?? Math.max(goal, this.#position);
    this.#isCaughtUp = to >= reading.position!;
    return { entries, to };
  }

  #take({ entries, to }: Page): readonly JournalEntry[] {
    const known = Math.max(this.#options.after, this.#position);
    this.#position = Math.max(this.#position, to);
    return entries.filter(({ position }) => position > known);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reading.leave(this);
  }
}
