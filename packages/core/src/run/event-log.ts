import type { RunEvent } from './events.ts';

/** How many events are kept for slow and for late readers. */
export const EVENTS_MAX = 10_000;

type Skipped = Extract<RunEvent, { type: 'events-skipped' }>;

/**
 * The events of one run for any number of readers. A run never waits for a reader: one that falls behind is told how
 * many it missed. Written by hand and not as an async generator, because `return()` on a generator hangs behind a
 * pending `next()`.
 */
export class EventLog implements AsyncIterable<RunEvent> {
  readonly #max: number;
  #events: RunEvent[] = [];
  /** The position of `#events[0]` in the whole stream. */
  #start = 0;
  #closed = false;
  #wake = new Set<() => void>();

  constructor(max: number = EVENTS_MAX) {
    this.#max = max;
  }

  push(event: RunEvent): void {
    if (this.#closed) return;
    this.#events.push(event);
    // Trim in bulk: shifting one by one would make every event cost the length of the log.
    if (this.#events.length >= 2 * this.#max) {
      this.#start += this.#events.length - this.#max;
      this.#events = this.#events.slice(-this.#max);
    }
    this.#wakeReaders();
  }

  close(): void {
    this.#closed = true;
    this.#wakeReaders();
  }

  [Symbol.asyncIterator](): AsyncIterator<RunEvent, undefined> {
    let position = 0;
    let returned = false;
    const waiting = new Set<() => void>();

    const next = async (): Promise<IteratorResult<RunEvent, undefined>> => {
      for (;;) {
        if (returned) return { done: true, value: undefined };
        if (position < this.#start) {
          const skipped = this.#skipped(this.#start - position);
          position = this.#start;
          return { done: false, value: skipped };
        }
        const event = this.#events[position - this.#start];
        if (event !== undefined) {
          position++;
          return { done: false, value: event };
        }
        if (this.#closed) return { done: true, value: undefined };
        await new Promise<void>((resolve) => {
          waiting.add(resolve);
          this.#wake.add(resolve);
        });
        waiting.clear();
      }
    };

    const finish = (): Promise<IteratorResult<RunEvent, undefined>> => {
      returned = true;
      for (const wake of waiting) {
        this.#wake.delete(wake);
        wake();
      }
      return Promise.resolve({ done: true, value: undefined });
    };

    return { next, return: finish };
  }

  #skipped(count: number): Skipped {
    const { runId, at } = this.#events[0]!;
    return { type: 'events-skipped', runId, at, count };
  }

  #wakeReaders(): void {
    const wake = this.#wake;
    if (wake.size === 0) return;
    this.#wake = new Set();
    for (const resolve of wake) resolve();
  }
}
