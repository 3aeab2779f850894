import type { RunEvent } from './events.ts';

/** How many events are kept for slow and late readers. */
const MAX_EVENTS = 10_000;

/** How many bytes, roughly, the kept events may take. */
const MAX_EVENT_BYTES = 16_777_216;

type Skipped = Extract<RunEvent, { type: 'events-skipped' }>;

/**
 * The events of one run, for any number of readers. A run never waits for a reader: one that falls behind gets the
 * number of events it missed. Don't make this an async generator: `return()` on a generator hangs behind a pending
 * `next()`.
 */
export class EventLog implements AsyncIterable<RunEvent> {
  readonly #max: number;
  readonly #maxBytes: number;
  #events: RunEvent[] = [];
  #bytes = 0;
  /** The position of `#events[0]` in the whole stream. */
  #start = 0;
  #closed = false;
  #wake = new Set<() => void>();

  constructor(max: number = MAX_EVENTS, maxBytes: number = MAX_EVENT_BYTES) {
    this.#max = max;
    this.#maxBytes = maxBytes;
  }

  push(event: RunEvent): void {
    if (this.#closed) return;
    this.#events.push(event);
    this.#bytes += measureBytes(event);
    // Trim in bulk: shifting one by one would make every event cost the length of the log.
    if (this.#events.length >= 2 * this.#max || this.#bytes >= 2 * this.#maxBytes) this.#trim();
    this.#wakeReaders();
  }

  /** Keeps the newest events within both limits, and always the last one. */
  #trim(): void {
    let kept = 0;
    let bytes = 0;
    while (kept < Math.min(this.#max, this.#events.length)) {
      const size = measureBytes(this.#events[this.#events.length - 1 - kept]!);
      if (kept > 0 && bytes + size > this.#maxBytes) break;
      bytes += size;
      kept++;
    }
    this.#start += this.#events.length - kept;
    this.#events = this.#events.slice(-kept);
    this.#bytes = bytes;
  }

  close(): void {
    this.#closed = true;
    this.#wakeReaders();
  }

  [Symbol.asyncIterator](): AsyncIterator<RunEvent, undefined> {
    let position = 0;
    let returned = false;
    // Each waiting reader removes itself: there may be several, and only some of them have been woken.
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
        const woken = Promise.withResolvers<void>();
        waiting.add(woken.resolve);
        this.#wake.add(woken.resolve);
        await woken.promise;
        waiting.delete(woken.resolve);
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

/** The approximate size of an object without its strings. */
const OBJECT_BYTES = 64;
/** Don't measure below this depth: a tool's input may be anything, including a cycle. */
const MAX_DEPTH = 8;

/** The approximate size of an event. The outcome at the end is not counted, because the run keeps it anyway. */
function measureBytes(event: RunEvent): number {
  if (event.type === 'text' || event.type === 'thinking') return 2 * OBJECT_BYTES + 2 * event.text.length;
  if (event.type === 'run-end') return OBJECT_BYTES;
  try {
    return estimateBytes(event, 0);
  } catch {
    // An input that throws when it is read.
    return OBJECT_BYTES;
  }
}

function estimateBytes(value: unknown, depth: number): number {
  if (typeof value === 'string') return 2 * value.length;
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return 8;
  let bytes = OBJECT_BYTES;
  for (const part of Object.values(value)) bytes += estimateBytes(part, depth + 1);
  return bytes;
}
