import { CancellationToken, isCancelledError, SettingsError } from '@whoa/core';
import { systemWorld, type World } from '@whoa/core/embed';
import type { JournalEvent } from '../run/journal/journal-event.ts';
import type { ClientStore } from '../store.ts';
import type { JournalEntry, TaskRecord, TaskRef } from '../task.ts';
import { formatPlace, parsePlace, type Seen } from './live-text.ts';
import type { Reader } from './reader.ts';
import { joinReading } from './shared-reading.ts';

export interface FollowOptions {
  /** Start after this: the `cursor` of the last event you have seen, or a position. Defaults to the beginning. */
  readonly after?: number | string | undefined;
  /** Stops following immediately. The task continues. */
  readonly signal?: AbortSignal | undefined;
  /** Called each time a request to the store failed; it is retried. */
  readonly onStoreError?: ((error: unknown) => void) | undefined;
  readonly world?: World | undefined;
}

/** What a follower sees of a task: its journal as it grows, then its end. `Event` adds your own event types. */
export type FollowEvent<Event = never> =
  /**
   * `isDraft`: its worker has said it, and the journal does not have it yet. Then `position` is the last one of the journal.
   * Words are seen once: the entry that has them later is left out, or has only what is new.
   */
  | ({
      readonly type: 'entry';
      readonly event: JournalEvent | Event;
      readonly isDraft?: true;
      readonly cursor: string;
    } & Omit<JournalEntry, 'event'>)
  /**
   * The worker was lost before it had written the drafts of this claim behind `said`, so they do not count. Position 0: the
   * store was restored, and everything comes again.
   */
  | (Omit<Extract<Seen, { type: 'taken-back' }>, 'place'> & { readonly cursor: string })
  | { readonly type: 'end'; readonly task: TaskRecord };

/**
 * Follows a task, from any process, until it has ended: its journal, and what its worker says before the journal has it. The
 * last item is one `end` with the outcome. It waits out store outages: nothing is skipped or repeated. To continue later, or
 * in another process, pass the last `cursor` as `after`.
 *
 * @returns The entries, then the end.
 * @throws {@link TaskNotFoundError} when there is no such task; {@link StoreClosedError} when the store was closed.
 *
 * @example
 * ```ts
 * import { followTask } from '@whoa/tasks';
 *
 * for await (const seen of followTask(store, task)) {
 *   if (seen.type === 'entry' && seen.event.type === 'text') process.stdout.write(seen.event.text);
 *   if (seen.type === 'end') console.log(seen.task.status);
 * }
 * ```
 */
export function followTask<Event = never>(
  store: ClientStore,
  task: TaskRef,
  options: FollowOptions = {},
): AsyncIterableIterator<FollowEvent<Event>, undefined> {
  const { signal, world = systemWorld } = options;
  const about = { name: `follow ${task.id}`, clock: world.clock };
  const token = signal === undefined ? new CancellationToken(about) : CancellationToken.from(signal, about);
  const following = follow(store, task, { ...options, token }) as AsyncGenerator<FollowEvent<Event>, undefined>;
  return {
    next: () => following.next(),
    // Needed because a generator's own `return` waits for its pending read.
    return() {
      token.cancel({ kind: 'parent' }, { mode: 'kill' });
      return following.return(undefined);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

async function* follow(
  store: ClientStore,
  task: TaskRef,
  options: FollowOptions & { readonly token: CancellationToken },
): AsyncGenerator<FollowEvent, undefined> {
  const { after = 0, token, onStoreError, world = systemWorld } = options;
  let reader: Reader | undefined;
  try {
    token.throwIfCancelled();
    const place = parsePlace(`${after}`);
    if (place === undefined) throw new SettingsError('after', `expected a cursor or a position, got ${after}`);
    reader = joinReading(store, task, { after: place, onStoreError, world });
    for (;;) {
      const next = await reader.next(token);
      if (!('place' in next)) {
        yield { type: 'end', task: next };
        return undefined;
      }
      token.throwIfCancelled();
      const { place, ...seen } = next;
      yield { ...seen, cursor: formatPlace(place) } as FollowEvent;
    }
  } catch (error) {
    // The caller stopped following and already knows the reason.
    if (!token.isCancelled || !isCancelledError(error)) throw error;
    return undefined;
  } finally {
    token[Symbol.dispose]();
    await reader?.[Symbol.asyncDispose]();
  }
}
