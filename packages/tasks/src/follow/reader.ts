import type { CancellationToken } from '@whoa/core';
import { waitUntilLevel } from '@whoa/core/embed';
import type { Frame } from '../bus/hint.ts';
import type { JournalEntry, TaskRecord } from '../task.ts';
import { LiveText, type Place, type Seen } from './live-text.ts';
import { retryWhileUnavailable } from './retry-while-unavailable.ts';

/** The maximum number of entries in one read, and of what waits for a reader. */
export const MAX_PAGE = 1_000;

export interface ReaderOptions {
  /** Skip everything up to this place. */
  readonly after: Partial<Place>;
  readonly onStoreError?: ((error: unknown) => void) | undefined;
}

/** What is read for all readers of a task, in this order. */
export type News =
  | { readonly entries: readonly JournalEntry[] }
  | { readonly record: TaskRecord }
  | { readonly frame: Frame }
  /** The store was restored to an earlier state. */
  | { readonly isRestored: true };

/** The state that the readers of one task share. */
export interface Reading {
  /** The place up to which all news was given; what is older, readers must read. */
  readonly place: Place;
  /** The last record. `undefined` before the first look. */
  readonly record: TaskRecord | undefined;
  /** Frames that the journal does not have yet. */
  readonly frames: readonly Frame[];
  /** The task, once it has ended and its whole journal was delivered. */
  readonly end: TaskRecord | undefined;
  readonly failure: { readonly error: unknown } | undefined;
  /** Reads part of the journal. */
  read(after: number): Promise<readonly JournalEntry[]>;
  /** The last reader to leave ends the reading and waits until its cleanup is done. */
  leave(reader: Reader): Promise<void>;
}

/**
 * One reader of a task. While it keeps up, it gets everything that is read for all readers. A reader that does not keep up
 * blocks no other reader and buffers nothing: it reads what it missed itself.
 */
export class Reader implements AsyncDisposable {
  readonly #reading: Reading;
  readonly #options: ReaderOptions;
  /** A position without a place: nothing up to it is shown, even if it is beyond the end. */
  readonly #skip: number;
  #text: LiveText;
  #news: News[] = [];
  #waiting = 0;
  /** Whether it gets what is read for all readers. */
  isCaughtUp = false;
  #hasBegun = false;
  /** Seen, and not returned yet. */
  #seen: Seen[] = [];
  #wake = Promise.withResolvers<void>();
  #failure: { readonly error: unknown } | undefined;

  constructor(reading: Reading, options: ReaderOptions) {
    this.#reading = reading;
    this.#options = options;
    const { position = 0, last } = options.after;
    this.#skip = last === undefined ? position : 0;
    this.#text = new LiveText(options.after);
  }

  /** Call it with a record that was read after the reader joined. */
  begin(record: TaskRecord): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    if (this.#skip > 0) this.#text = new LiveText({ position: Math.min(this.#skip, record.position) });
    else if (this.#text.isRestored(record)) this.#note(this.#text.restart());
    this.wake();
  }

  receive(news: News): void {
    if (!this.isCaughtUp) return;
    this.#waiting += 'entries' in news ? news.entries.length : 1;
    this.isCaughtUp = this.#news.length === 0 || this.#waiting <= MAX_PAGE;
    if (this.isCaughtUp) this.#news.push(news);
    else this.#drop();
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

  /** Returns what it sees next, or the task when there is no more. */
  async next(token: CancellationToken): Promise<Seen | TaskRecord> {
    for (;;) {
      token.throwIfCancelled();
      this.#wake = Promise.withResolvers();
      const seen = this.#seen.shift();
      if (seen !== undefined) return seen;
      const news = this.#news.shift();
      if (news !== undefined) {
        this.#take(news);
        continue;
      }
      const failure = this.#failure ?? this.#reading.failure;
      if (failure !== undefined) throw failure.error;
      if (this.isCaughtUp && this.#reading.end !== undefined) return this.#reading.end;
      if (this.#hasBegun && !this.isCaughtUp) await this.#catchUp(token);
      else await waitUntilLevel(this.#wake.promise, token, 'drain');
    }
  }

  #drop(): void {
    this.#news = [];
    this.#waiting = 0;
  }

  #take(news: News): void {
    this.#waiting -= 'entries' in news ? news.entries.length : 1;
    if ('entries' in news) this.#note(this.#text.takeEntries(news.entries) ?? this.#text.restart());
    else if ('record' in news) this.#note(this.#text.takeRecord(news.record));
    else if ('frame' in news) this.#takeFrame(news.frame);
    else {
      this.#note(this.#text.restart());
      this.isCaughtUp = false;
      this.#drop();
    }
  }

  #takeFrame(frame: Frame): void {
    const seen = this.#text.takeFrame(frame);
    if (typeof seen !== 'string') this.#note(seen);
  }

  #note(seen: readonly Seen[]): void {
    for (const one of seen) if (one.type !== 'entry' || one.position > this.#skip || one.isDraft) this.#seen.push(one);
  }

  /** Reads a page that it missed. The last page brings it to where all readers are. */
  async #catchUp(token: CancellationToken): Promise<void> {
    const reading = this.#reading;
    const onStoreError = (error: unknown): void => this.#options.onStoreError?.(error);
    const after = this.#text.readAfter;
    const goal = reading.place.position;
    const entries = await retryWhileUnavailable(() => reading.read(after), { token, onStoreError });
    const seen = this.#text.takeEntries(entries);
    this.#note(seen ?? this.#text.restart());
    const { place, record, frames } = reading;
    // Removed entries leave gaps, also at the end.
    const isWhole = entries.length < MAX_PAGE && place.position === goal;
    if (seen === undefined || !(isWhole || this.#text.place.position >= place.position)) return;
    this.isCaughtUp = true;
    this.#note(this.#text.takeRecord(record!));
    for (const frame of frames) this.#takeFrame(frame);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reading.leave(this);
  }
}
