import { CancellationToken, isCancelledError } from '@whoa/core';
import { systemWorld, type World } from '@whoa/core/embed';
import type { JournalEvent } from '../journal-event.ts';
import type { ClientStore } from '../store.ts';
import type { JournalEntry, TaskRecord, TaskRef } from '../task.ts';
import type { Reader } from './reader.ts';
import { joinReading } from './shared-reading.ts';

export interface FollowOptions {
  /** Start after this position. Defaults to the beginning of the journal. */
  readonly after?: number;
  /** Stops following immediately. The task continues. */
  readonly signal?: AbortSignal;
  /** Called each time a request to the store failed; it is retried. */
  readonly onStoreError?: (error: unknown) => void;
  readonly world?: World;
}

/** What a follower sees of a task: its journal as it grows, then its end. `Event` adds your own event types. */
export type FollowEvent<Event = never> =
  | ({ readonly type: 'entry'; readonly event: JournalEvent | Event } & Omit<JournalEntry, 'event'>)
  | { readonly type: 'end'; readonly task: TaskRecord };

/**
 * Follows the journal of a task, from any process, until the task has ended. The last item is one `end` with the
 * outcome. It waits out store outages: no entry is skipped or repeated. To continue later, or in another process, pass
 * the last position as `after`.
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
    reader = joinReading(store, task, { after, onStoreError, world });
    for (;;) {
      const next = await reader.next(token);
      if (!isPage(next)) {
        yield { type: 'end', task: next };
        return undefined;
      }
      for (const entry of next) {
        token.throwIfCancelled();
        yield { type: 'entry', ...entry, event: entry.event as unknown as JournalEvent };
      }
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

function isPage(next: readonly JournalEntry[] | TaskRecord): next is readonly JournalEntry[] {
  return Array.isArray(next);
}
