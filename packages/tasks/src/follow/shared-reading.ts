import { CancellationToken } from '@whoa/core';
import { type Clock, type World, waitUntilLevel } from '@whoa/core/embed';
import type { Frame } from '../bus/hint.ts';
import { TaskNotFoundError } from '../errors.ts';
import { isFinalStatus } from '../ledger/rules/status.ts';
import type { ClientStore, Hint } from '../store.ts';
import type { JournalEntry, TaskRecord, TaskRef } from '../task.ts';
import { LiveText, type Place } from './live-text.ts';
import { MAX_PAGE, type News, Reader, type ReaderOptions, type Reading } from './reader.ts';
import { retryWhileUnavailable } from './retry-while-unavailable.ts';

/** Without a hint, the store is asked after this long. The pause doubles each time nothing was new. */
const POLL_INTERVAL_MS = 1_000;
const MAX_POLL_INTERVAL_MS = 10_000;
/** Pauses vary by up to this share, so that followers that started together do not ask together. */
const JITTER = 0.2;
/** How many frames wait for a read, and are kept for readers that join. */
const MAX_FRAMES = 64;

const readings = new WeakMap<ClientStore, WeakMap<Clock, Map<string, SharedReading>>>();

/** Joins the reading of a task, which all followers of the task in this process share if they use the same store. */
export function joinReading(store: ClientStore, task: TaskRef, options: ReaderOptions & { world: World }): Reader {
  const { clock } = options.world;
  const byClock = readings.get(store) ?? new WeakMap<Clock, Map<string, SharedReading>>();
  const byTask = byClock.get(clock) ?? new Map<string, SharedReading>();
  readings.set(store, byClock.set(clock, byTask));
  const key = JSON.stringify([task.tenant, task.id]);
  const known = byTask.get(key);
  if (known !== undefined) return known.join(options);
  const onOver = (): void => {
    if (byTask.get(key) === reading) byTask.delete(key);
  };
  const reading = new SharedReading({ store, task, world: options.world, onOver });
  byTask.set(key, reading);
  return reading.join(options);
}

interface ReadingOptions {
  readonly store: ClientStore;
  readonly task: TaskRef;
  readonly world: World;
  /** Called when new followers have to start a new reading. */
  readonly onOver: () => void;
}

/**
 * Looks at one task for all its readers: one watch, one timer, and everything new is read once. It exists from its first
 * reader to its last, or to the end of the task. Readers that fall behind read what they missed themselves.
 */
class SharedReading implements Reading {
  readonly #options: ReadingOptions;
  readonly #token: CancellationToken;
  readonly #readers = new Set<Reader>();
  #running: Promise<void> | undefined;
  #watching: AsyncDisposable | undefined;
  #wake = Promise.withResolvers<void>();
  #isDue = true;
  /** The look that follows was not asked for by a hint or a frame. */
  #isPoll = false;
  #pollIntervalMs = POLL_INTERVAL_MS;
  /** Decides what to read. It sees everything that its readers are given. */
  #text: LiveText = new LiveText();
  record: TaskRecord | undefined;
  frames: Frame[] = [];
  /** What arrived while a read was due or in progress, or before what it continues. */
  #waiting: Frame[] = [];
  /** Frames that have brought a read. They bring no other. */
  readonly #asked = new WeakSet<Frame>();
  #isLooking = false;
  end: TaskRecord | undefined;
  failure: { readonly error: unknown } | undefined;

  constructor(options: ReadingOptions) {
    this.#options = options;
    this.#token = new CancellationToken({ name: `follow ${options.task.id}`, clock: options.world.clock });
  }

  get place(): Place {
    return this.#text.place;
  }

  /** A new reader sees everything that happened before it joined, whether or not a hint arrived. */
  join(options: ReaderOptions): Reader {
    const reader = new Reader(this, options);
    this.#readers.add(reader);
    this.#running ??= this.#run();
    this.#scheduleLook();
    return reader;
  }

  async leave(reader: Reader): Promise<void> {
    if (!this.#readers.delete(reader) || this.#readers.size > 0) return;
    this.#options.onOver();
    this.#token.cancel({ kind: 'parent' }, { mode: 'kill' });
    await this.#running;
  }

  read(after: number): Promise<readonly JournalEntry[]> {
    return this.#options.store.read(this.#options.task, { after, limit: MAX_PAGE });
  }

  async #run(): Promise<void> {
    try {
      await this.#ask(() => this.#watch());
      while (this.end === undefined) {
        await this.#look();
        this.#takeWaiting();
        if (this.end === undefined && !this.#isDue) await this.#pause();
      }
    } catch (error) {
      // The last reader has left and already knows the reason.
      if (!this.#token.isCancelled) this.failure = { error };
    }
    this.#options.onOver();
    for (const reader of this.#readers) reader.wake();
    await this.#stopWatching();
    this.#token[Symbol.dispose]();
  }

  async #watch(): Promise<void> {
    const { store, task } = this.#options;
    const watching = await store.watch({ ...task, words: true }, (hint) => this.#handleHint(hint));
    // All readers may have left in the meantime.
    if (this.#token.isCancelled) await watching[Symbol.asyncDispose]();
    else this.#watching = watching;
  }

  async #stopWatching(): Promise<void> {
    try {
      await this.#watching?.[Symbol.asyncDispose]();
    } catch (error) {
      // The store removes watchers that no longer listen.
      this.#reportError(error);
    }
  }

  /** Ignores commands: they are for the worker. What was appended, its worker tells with a frame. */
  #handleHint(hint: Hint): void {
    if (hint.type === 'frame') this.#handleFrame(hint.frame);
    else if (hint.type !== 'command' && hint.type !== 'journal') this.#scheduleLook();
  }

  #handleFrame(frame: Frame): void {
    if (this.#isLooking || this.#isDue) {
      this.#wait(frame);
      return;
    }
    const { said, position } = this.#text.place;
    const seen = this.#text.takeFrame(frame);
    const needsRead = seen === 'read' && !this.#asked.has(frame);
    if (needsRead) this.#asked.add(frame);
    if (needsRead || seen === 'ahead') this.#wait(frame);
    if (needsRead) this.#scheduleLook();
    if (typeof seen === 'string') return;
    const { place } = this.#text;
    if (place.said === said && place.position === position) return;
    this.frames = [...this.frames.filter(({ to }) => to > frame.kept), frame].slice(-MAX_FRAMES);
    this.#publish({ frame });
    this.#takeWaiting();
  }

  #wait(frame: Frame): void {
    if (this.#waiting.push(frame) > MAX_FRAMES) this.#waiting.shift();
  }

  /** If one of them needs another read, the others wait for that. */
  #takeWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const frame of waiting) this.#handleFrame(frame);
  }

  #scheduleLook(): void {
    this.#isDue = true;
    this.#isPoll = false;
    this.#wake.resolve();
  }

  /** Reads the record, then what is new in the journal. Anything that happens after the request makes a look due again. */
  async #look(): Promise<void> {
    const { store, task: ref } = this.#options;
    const joined = [...this.#readers];
    this.#isDue = false;
    this.#isLooking = true;
    const record = await this.#ask(() => store.get(ref));
    if (record === undefined) throw new TaskNotFoundError(ref.id);
    // Its readers read for themselves what was before.
    const hasListener = [...this.#readers].some(({ isCaughtUp }) => isCaughtUp);
    if (!hasListener) this.#text = new LiveText({ position: record.position });
    else if (this.#text.isRestored(record)) this.#restart();
    const before = this.#text.place;
    this.record = record;
    const isSame = before.epoch === record.epoch && before.position === record.position;
    if (!isSame || isFinalStatus(record.status)) await this.#readEntries(record);
    const { place } = this.#text;
    this.#text.takeRecord(record);
    if (place.epoch !== this.#text.place.epoch) this.frames = [];
    this.#publish({ record });
    if (this.#isPoll && this.#text.place.position > before.position) this.#pollIntervalMs = POLL_INTERVAL_MS;
    this.#isLooking = false;
    if (isFinalStatus(record.status)) this.end = record;
    // An end does not change: those that joined meanwhile can use it, too.
    for (const reader of this.end === undefined ? joined : this.#readers) {
      reader.begin(record);
      reader.wake();
    }
  }

  async #readEntries({ position }: TaskRecord): Promise<void> {
    for (let isFirst = true; isFirst || this.place.position < position; isFirst = false) {
      const after = this.#text.readAfter;
      const entries = await this.#ask(() => this.read(after));
      if (this.#text.takeEntries(entries) === undefined) this.#restart();
      else if (entries.length > 0) this.#publish({ entries });
      // Removed entries leave gaps, also at the end.
      if (entries.length < MAX_PAGE && this.#text.readAfter >= after) return;
    }
  }

  #restart(): void {
    this.#text.restart();
    this.frames = [];
    this.#publish({ isRestored: true });
  }

  #publish(news: News): void {
    for (const reader of this.#readers) reader.receive(news);
  }

  /** Waits for a hint, or long enough that one may have been lost. */
  async #pause(): Promise<void> {
    const { world } = this.#options;
    this.#wake = Promise.withResolvers();
    const timer = world.clock.setTimer(this.#pollIntervalMs * (1 - JITTER * world.random()), () => {
      this.#pollIntervalMs = Math.min(2 * this.#pollIntervalMs, MAX_POLL_INTERVAL_MS);
      this.#scheduleLook();
      this.#isPoll = true;
    });
    try {
      await waitUntilLevel(this.#wake.promise, this.#token, 'drain');
    } finally {
      timer[Symbol.dispose]();
    }
    this.#token.throwIfCancelled();
  }

  #ask<T>(question: () => Promise<T>): Promise<T> {
    return retryWhileUnavailable(question, { token: this.#token, onStoreError: (error) => this.#reportError(error) });
  }

  #reportError(error: unknown): void {
    for (const reader of this.#readers) reader.reportError(error);
  }
}
