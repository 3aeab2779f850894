import type { Clock, Json } from '@whoa/core';
import { LeaseLostError } from '../errors.ts';
import type { Orders, TaskStore } from '../store.ts';
import { entryFor, withEntry } from './entry.ts';

/** How long a store that fails is left alone before it is tried again. */
const RETRY_MS = 100;

export interface JournalOptions {
  readonly store: TaskStore;
  readonly id: string;
  readonly epoch: number;
  /** Where the journal ends now. */
  readonly position: number;
  readonly clock: Clock;
  /** How long an event may wait while somebody reads along. */
  readonly flushMs: number;
  /** And while nobody does. */
  readonly unwatchedFlushMs: number;
  readonly onOrders: (orders: Orders) => void;
  readonly onLost: (error: LeaseLostError) => void;
  readonly onStoreError: (error: unknown) => void;
}

/** Writes a task's events down in order: at once where it matters, otherwise a little later and several together. */
export class Journal {
  readonly #options: JournalOptions;
  #position: number;
  #waiting: Json[] = [];
  #done: number[] = [];
  #timer: Disposable | undefined;
  #watched = false;
  #writing: Promise<void> | undefined;
  #lost: LeaseLostError | undefined;

  constructor(options: JournalOptions) {
    this.#options = options;
    this.#position = options.position;
  }

  /** Notes an event; it is written a little later. */
  add(event: object): void {
    if (this.#lost !== undefined) return;
    this.#waiting = withEntry(this.#waiting, entryFor(event));
    this.#schedule();
  }

  /** Somebody reads along, or nobody does any more. */
  watch(watched: boolean): void {
    if (watched === this.#watched) return;
    this.#watched = watched;
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    if (this.#waiting.length > 0) this.#schedule();
  }

  #schedule(): void {
    const { clock, flushMs, unwatchedFlushMs } = this.#options;
    this.#timer ??= clock.setTimer(this.#watched ? flushMs : unwatchedFlushMs, () => this.flushSoon());
  }

  /** Notes that a command has been carried out. */
  done(number: number): void {
    this.#done.push(number);
    this.flushSoon();
  }

  /** Writes now, without anybody waiting for it. */
  flushSoon(): void {
    // Whoever must know waits for `flush`, and `onLost` has been told.
    this.flush().catch(() => {});
  }

  /** Resolves when everything noted so far is in the store. Rejects with `LeaseLostError`. */
  async flush(): Promise<void> {
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    while (this.#writing !== undefined) await this.#writing;
    this.#throwIfLost();
    if (this.#waiting.length === 0 && this.#done.length === 0) return;
    this.#writing = this.#write(this.#waiting, this.#done);
    this.#waiting = [];
    this.#done = [];
    await this.#writing;
    this.#throwIfLost();
  }

  #throwIfLost(): void {
    if (this.#lost !== undefined) throw this.#lost;
  }

  /** Gives up on the store: what has not been written will not be. */
  close(error: LeaseLostError): void {
    this.#lost ??= error;
    this.#timer?.[Symbol.dispose]();
  }

  /** Never rejects. A batch may be sent twice: the store takes it once. */
  async #write(events: Json[], done: number[]): Promise<void> {
    const { store, id, epoch, onOrders } = this.#options;
    try {
      while (this.#lost === undefined) {
        try {
          const orders = await store.append(id, epoch, { after: this.#position, events, done });
          this.#position += events.length;
          onOrders(orders);
          return;
        } catch (error) {
          await this.#afterFailure(error);
        }
      }
    } finally {
      this.#writing = undefined;
    }
  }

  async #afterFailure(error: unknown): Promise<void> {
    if (error instanceof LeaseLostError) {
      this.#lost ??= error;
      this.#options.onLost(error);
      return;
    }
    this.#options.onStoreError(error);
    await new Promise<void>((resolve) => this.#options.clock.setTimer(RETRY_MS, resolve));
  }
}
