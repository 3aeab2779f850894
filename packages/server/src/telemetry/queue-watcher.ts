import type { Clock } from '@whoa/core/embed';
import type { TaskStore } from '@whoa/tasks';
import type { Meter } from './meter.ts';

const EVERY_MS = 15_000;
/** How much a server reads each time: this many queues, in so many requests. With more, figures are lower bounds. */
const PAGE = 100;
const MAX_PAGES = 10;

interface QueueWatcherOptions {
  readonly store: TaskStore;
  readonly meter: Meter;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

/** Reads at intervals what waits in the queues of a store, so that a scrape does not have to ask it. */
export class QueueWatcher implements AsyncDisposable {
  readonly #options: QueueWatcherOptions;
  #timer: Disposable | undefined;
  #reading: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: QueueWatcherOptions) {
    this.#options = options;
    this.#read();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    this.#timer?.[Symbol.dispose]();
    await this.#reading;
  }

  #read(): void {
    const { clock, onError } = this.#options;
    this.#reading = this.#measure()
      .catch(onError)
      .finally(() => {
        if (!this.#isStopped) this.#timer = clock.setTimer(EVERY_MS, () => this.#read(), { keepAlive: false });
      });
  }

  async #measure(): Promise<void> {
    const { store, meter } = this.#options;
    let [ready, oldestMs] = [0, 0];
    let cursor: string | undefined;
    for (let pages = 0; pages < MAX_PAGES && !this.#isStopped; pages++) {
      const page = await store.queues({ limit: PAGE, ...(cursor !== undefined && { cursor }) });
      for (const queue of page.queues) {
        ready += queue.ready;
        oldestMs = Math.max(oldestMs, page.now - queue.oldestAt);
      }
      cursor = page.next;
      if (cursor === undefined) break;
    }
    meter.series('whoa.ready.tasks').set(ready);
    meter.series('whoa.ready.oldest').set(oldestMs / 1_000);
  }
}
