import { CancellationToken } from '@whoa/core';
import { type Clock, type World, waitUntilLevel } from '@whoa/core/embed';
import { TaskNotFoundError } from '../errors.ts';
import { isFinalStatus } from '../status.ts';
import type { ClientStore, Hint } from '../store.ts';
import type { JournalEntry, TaskRecord, TaskRef } from '../task.ts';
import { MAX_PAGE, type Page, Reader, type ReaderOptions, type Reading } from './reader.ts';
import { retryWhileUnavailable } from './retry-while-unavailable.ts';

/** While a task is followed, its worker writes more often, until this long after the last look. */
const WATCH_MS = 30_000;
/** The watch is renewed after this. With the longest pause between looks it stays well below `WATCH_MS / 2`. */
const REGISTER_MS = 4_000;
/** Without a hint, the store is asked after this long. The pause doubles each time nothing was new. */
const POLL_INTERVAL_MS = 1_000;
const MAX_POLL_INTERVAL_MS = 10_000;
/** Pauses vary by up to this share, so that followers that started together do not ask together. */
const JITTER = 0.2;

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
 * Looks at one task for all its readers: one watch, one timer, and each new entry is read once. It exists from its
 * first reader to its last, or to the end of the task. Readers that fall behind read what they missed themselves.
 */
class SharedReading implements Reading {
  readonly #options: ReadingOptions;
  readonly #token: CancellationToken;
  readonly #readers = new Set<Reader>();
  #running: Promise<void> | undefined;
  #watching: AsyncDisposable | undefined;
  #wake = Promise.withResolvers<void>();
  /** What the next look has to read: new entries, or the whole task. */
  #due: 'nothing' | 'journal' | 'task' = 'task';
  #pollIntervalMs = POLL_INTERVAL_MS;
  #hasStarted = false;
  #registeredAt = -Infinity;
  #position: number | undefined;
  #end: TaskRecord | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(options: ReadingOptions) {
    this.#options = options;
    this.#token = new CancellationToken({ name: `follow ${options.task.id}`, clock: options.world.clock });
  }

  get position(): number | undefined {
    return this.#position;
  }

  get end(): TaskRecord | undefined {
    return this.#end;
  }

  get failure(): { readonly error: unknown } | undefined {
    return this.#failure;
  }

  /** A new reader sees everything that happened before it joined, whether or not a hint arrived. */
  join(options: ReaderOptions): Reader {
    const reader = new Reader(this, options);
    this.#readers.add(reader);
    this.#running ??= this.#run();
    this.#scheduleLook('task');
    return reader;
  }

  async leave(reader: Reader): Promise<void> {
    if (!this.#readers.delete(reader) || this.#readers.size > 0) return;
    this.#options.onOver();
    this.#token.cancel({ kind: 'parent' }, { mode: 'kill' });
    await this.#running;
  }

  /** Renews the watch on the journal now and then, while the task has a worker. */
  async read(after: number): Promise<readonly JournalEntry[]> {
    const { store, task, world } = this.#options;
    const now = world.clock.now();
    const isRegistered = !this.#hasStarted || this.#end !== undefined || now < this.#registeredAt + REGISTER_MS;
    const entries = await store.read(task, { after, limit: MAX_PAGE, ...(!isRegistered && { watchTtlMs: WATCH_MS }) });
    if (!isRegistered) this.#registeredAt = now;
    return entries;
  }

  async #run(): Promise<void> {
    try {
      await this.#ask(() => this.#watch());
      while (this.#end === undefined) {
        await this.#look();
        if (this.#end === undefined && this.#due === 'nothing') await this.#pause();
      }
    } catch (error) {
      // The last reader has left and already knows the reason.
      if (!this.#token.isCancelled) this.#failure = { error };
    }
    this.#options.onOver();
    for (const reader of this.#readers) reader.wake();
    await this.#stopWatching();
    this.#token[Symbol.dispose]();
  }

  async #watch(): Promise<void> {
    const { store, task } = this.#options;
    const watching = await store.watch(task, (hint) => this.#handleHint(hint));
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

  /** Ignores commands: they are for the worker. */
  #handleHint({ type }: Hint): void {
    if (type !== 'command') this.#scheduleLook(type === 'journal' ? 'journal' : 'task');
  }

  #scheduleLook(due: 'journal' | 'task'): void {
    if (this.#due !== 'task') this.#due = due;
    this.#pollIntervalMs = POLL_INTERVAL_MS;
    this.#wake.resolve();
  }

  /** Reads what is due. Anything that happens after the request makes something due again. */
  async #look(): Promise<void> {
    const isWhole = this.#due === 'task' || !this.#hasCaughtUpReader;
    this.#due = 'nothing';
    if (!isWhole) return this.#readOn(undefined);
    const { store, task: ref } = this.#options;
    const task = await this.#ask(() => store.get(ref));
    if (task === undefined) throw new TaskNotFoundError(ref.id);
    this.#hasStarted = task.status !== 'init';
    if (this.#position === undefined) this.#begin(task.position);
    await this.#readOn(task.position);
    if (isFinalStatus(task.status)) this.#end = task;
  }

  #begin(position: number): void {
    this.#position = position;
    for (const reader of this.#readers) reader.begin();
  }

  /** Reads new entries up to a position, or at least one page. Reads nothing if all readers still have pages. */
  async #readOn(to: number | undefined): Promise<void> {
    const isNoteDue = this.#hasStarted && this.#options.world.clock.now() >= this.#registeredAt + REGISTER_MS;
    for (let isFirst = true; ; isFirst = false) {
      const from = this.#position!;
      if (to !== undefined && from >= to && !(isFirst && isNoteDue)) return;
      if (!this.#hasCaughtUpReader) {
        if (to === undefined) this.#scheduleLook('task');
        else this.#publish({ entries: [], to });
        return;
      }
      const entries = await this.#ask(() => this.read(from));
      // Removed entries leave gaps, also at the end.
      const end = entries.at(-1)?.position ?? to ?? from;
      if (end > from) this.#publish({ entries, to: end });
      if (entries.length === 0 || (to === undefined && entries.length < MAX_PAGE)) return;
    }
  }

  #publish(page: Page): void {
    this.#position = Math.max(this.#position!, page.to);
    this.#pollIntervalMs = POLL_INTERVAL_MS;
    for (const reader of this.#readers) reader.receive(page);
  }

  get #hasCaughtUpReader(): boolean {
    for (const reader of this.#readers) if (reader.isCaughtUp) return true;
    return false;
  }

  /** Waits for a hint, or long enough that one may have been lost. */
  async #pause(): Promise<void> {
    const { world } = this.#options;
    this.#wake = Promise.withResolvers();
    const timer = world.clock.setTimer(this.#pollIntervalMs * (1 - JITTER * world.random()), () => {
      this.#due = 'task';
      this.#pollIntervalMs = Math.min(2 * this.#pollIntervalMs, MAX_POLL_INTERVAL_MS);
      this.#wake.resolve();
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
