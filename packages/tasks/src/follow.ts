import { CancellationToken, isCancelledError, sleep, systemWorld, type World, waitUnder } from '@whoa/core';
import { TaskUnknownError } from './errors.ts';
import type { JournalEvent } from './journal-event.ts';
import { isFinal } from './status.ts';
import type { TaskStore } from './store.ts';
import type { JournalEntry, TaskRecord, TaskRef } from './task.ts';

/** While a task is followed, its worker is asked to write more often. */
const WATCH_MS = 5_000;
/** The store is asked again this often, in case no hint came. */
const LOOK_MS = 1_000;
/** A store that fails is asked again after this; it doubles up to `LOOK_MS`. */
const RETRY_MS = 50;

export interface FollowOptions {
  /** The position of the last entry that is known; without it, from the beginning. */
  readonly after?: number;
  /** Ends the following at once. The task goes on. */
  readonly signal?: AbortSignal;
  /** Told each time the store could not be asked; it is asked again. */
  readonly onStoreError?: (error: unknown) => void;
  readonly world?: World;
}

/** What is seen of a task that is followed: its journal as it grows, then its end. `Event` adds events of one's own. */
export type Followed<Event = never> =
  | ({ readonly type: 'entry'; readonly event: JournalEvent | Event } & Omit<JournalEntry, 'event'>)
  | { readonly type: 'end'; readonly task: TaskRecord };

/**
 * Reads a task's journal along, from any process, until the task has ended; then comes one `end` with its outcome. An
 * outage of the store is waited out: nothing is skipped, nothing comes twice. To go on later, or elsewhere, hand the last
 * position in as `after`.
 *
 * ```ts
 * for await (const seen of followTask(store, { tenant, id })) {
 *   if (seen.type === 'entry' && seen.event.type === 'text') process.stdout.write(seen.event.text);
 *   if (seen.type === 'end') console.log(seen.task.status);
 * }
 * ```
 */
export function followTask<Event = never>(
  store: TaskStore,
  task: TaskRef,
  options: FollowOptions = {},
): AsyncIterableIterator<Followed<Event>, undefined> {
  const { signal, world = systemWorld } = options;
  const about = { name: `follow ${task.id}`, clock: world.clock };
  const token = signal === undefined ? new CancellationToken(about) : CancellationToken.from(signal, about);
  const following = follow(store, task, { ...options, token }) as AsyncGenerator<Followed<Event>, undefined>;
  return {
    next: () => following.next(),
    // A generator alone would not return before what it waits for has come.
    return() {
      token.cancel({ kind: 'parent' }, { how: 'kill' });
      return following.return(undefined);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

async function* follow(
  store: TaskStore,
  ref: TaskRef,
  { after = 0, token, onStoreError }: FollowOptions & { readonly token: CancellationToken },
): AsyncGenerator<Followed, undefined> {
  const ask = <T>(question: () => Promise<T>): Promise<T> => askUntilAnswered(question, token, onStoreError);
  let wake = Promise.withResolvers<void>();
  let watching: AsyncDisposable | undefined;
  try {
    watching = await ask(() => store.watch(ref, () => wake.resolve()));
    for (let position = after; ; ) {
      // Listen before asking: what happens in between wakes us.
      wake = Promise.withResolvers();
      const task = await ask(() => store.get(ref));
      if (task === undefined) throw new TaskUnknownError(ref.id);
      for (;;) {
        const from = position;
        const entries = await ask(() => store.read(ref, { after: from, watchMs: WATCH_MS }));
        if (entries.length === 0) break;
        for (const entry of entries) {
          token.throwIfCancelled();
          yield { type: 'entry', ...entry, event: entry.event as unknown as JournalEvent };
          position = entry.position;
        }
      }
      if (isFinal(task.status)) {
        yield { type: 'end', task };
        return undefined;
      }
      await nextLook(wake, token);
    }
  } catch (error) {
    // Whoever ended the following knows why.
    if (!token.isCancelled || !isCancelledError(error)) throw error;
    return undefined;
  } finally {
    token[Symbol.dispose]();
    await watching?.[Symbol.asyncDispose]();
  }
}

/** Asks a store something that changes nothing until it answers. Throws `CancelledError` as soon as nobody waits. */
async function askUntilAnswered<T>(
  question: () => Promise<T>,
  token: CancellationToken,
  onStoreError: FollowOptions['onStoreError'],
): Promise<T> {
  for (let retryMs = RETRY_MS; ; retryMs = Math.min(2 * retryMs, LOOK_MS)) {
    const end = await waitUnder(question(), token, 'drain');
    token.throwIfCancelled();
    if (end.by === 'value') return end.value;
    const { error } = end as { error: unknown };
    if (!isOutage(error)) throw error;
    onStoreError?.(error);
    await sleep(retryMs, { clock: token.clock, token });
  }
}

const OUTAGES: ReadonlySet<unknown> = new Set(['STORE_BUSY', 'UNKNOWN_OUTCOME']);

/** Goes by the code: two copies of this package may meet. */
function isOutage(error: unknown): boolean {
  return OUTAGES.has((error as { code?: unknown } | undefined)?.code);
}

async function nextLook(wake: PromiseWithResolvers<void>, token: CancellationToken): Promise<void> {
  const timer = token.clock.setTimer(LOOK_MS, () => wake.resolve());
  try {
    await waitUnder(wake.promise, token, 'drain');
  } finally {
    timer[Symbol.dispose]();
  }
  token.throwIfCancelled();
}
