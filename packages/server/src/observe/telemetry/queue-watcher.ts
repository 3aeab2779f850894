import type { Clock } from '@whoa/core/embed';
import type { TaskStore } from '@whoa/tasks';
import type { Meter } from './meter.ts';

const EVERY_MS = 15_000;
/** Until it has a first reading, a process asks again after this time: another one may be reading for it. */
const FIRST_MS = 1_000;
/** One server reads for all, when the last reading is older than this. */
const MAX_AGE_MS = 10_000;
/** How much it reads each time: this many queues, in so many requests. With more, figures are lower bounds. */
const PAGE = 50;
const MAX_PAGES = 20;

interface QueueWatcherOptions {
  readonly store: TaskStore;
  readonly meter: Meter;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

/** Reads at intervals what waits in the queues of a store, so that a scrape does not have to ask it. */
export function watchQueues({ store, meter, clock, onError }: QueueWatcherOptions): AsyncDisposable {
  let isStopped = false;
  let nextMs = FIRST_MS;
  let timer: Disposable | undefined;
  const measure = async (): Promise<void> => {
    const found = await store.findOnce(MAX_AGE_MS, () => readQueues(store, () => isStopped));
    if (found === undefined || isStopped) return;
    nextMs = EVERY_MS;
    meter.series('whoa.ready.tasks').set(found.ready);
    meter.series('whoa.ready.oldest').set(found.oldestWaitMs / 1_000);
  };
  const repeat = async (): Promise<void> => {
    await measure().catch(onError);
    if (!isStopped) timer = clock.setTimer(nextMs, () => void (reading = repeat()), { keepAlive: false });
  };
  let reading = repeat();
  return {
    async [Symbol.asyncDispose]() {
      isStopped = true;
      timer?.[Symbol.dispose]();
      await reading;
    },
  };
}

async function readQueues(store: TaskStore, isStopped: () => boolean) {
  const figures = { ready: 0, oldestWaitMs: 0 };
  for (let pages = 0, cursor: string | undefined; pages === 0 || (cursor && pages < MAX_PAGES); pages++) {
    if (isStopped()) return undefined;
    const { queues, now, next } = await store.queues({ limit: PAGE, ...(cursor && { cursor }) });
    for (const { ready, oldestReadyAt } of queues) {
      figures.ready += ready;
      figures.oldestWaitMs = Math.max(figures.oldestWaitMs, now - oldestReadyAt);
    }
    cursor = next;
  }
  return figures;
}
