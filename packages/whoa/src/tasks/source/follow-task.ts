import { CancellationToken } from '@whoa/core';
import { waitUntilLevel } from '@whoa/core/embed';
import {
  followTask as follow,
  isFinalStatus,
  type JournalEntry,
  type TaskRecord,
  type TaskRef,
  type TaskStore,
} from '@whoa/tasks';

/** How often we read the store when no change notification arrives. */
const POLL_INTERVAL_MS = 1_000;

export interface FollowOptions {
  /** Return `stop` to stop following. */
  readonly onEntry?: (entry: JournalEntry) => 'stop' | undefined;
  /** Called each time the task may have changed. Return `stop` to stop following. */
  readonly onRecord?: (task: TaskRecord) => 'stop' | undefined | Promise<'stop' | undefined>;
  /** Called when drafts were lost with their worker. Only if `isLive`. */
  readonly onTakenBack?: () => void;
  readonly token?: CancellationToken;
  /** Show entries before the journal has them. */
  readonly isLive?: boolean;
}

/** Follows a task with what its worker says until it has ended. Returns its last record. */
async function followLive(store: TaskStore, ref: TaskRef, options: FollowOptions): Promise<TaskRecord> {
  const { onEntry, onRecord, onTakenBack, token = new CancellationToken({ name: 'follow' }) } = options;
  const ending = new AbortController();
  const look = async (): Promise<void> => {
    const record = await store.get(ref);
    if (record === undefined || (await onRecord?.(record)) === 'stop') ending.abort();
  };
  token.onCancel(() => ending.abort());
  const timer = setInterval(() => void look().catch(() => {}), POLL_INTERVAL_MS);
  try {
    for await (const seen of follow(store, ref, { signal: ending.signal })) {
      if (seen.type === 'end') return seen.task;
      if (seen.type === 'taken-back') onTakenBack?.();
      else if (onEntry?.({ ...seen, event: seen.event as unknown as JournalEntry['event'] }) === 'stop') break;
    }
  } finally {
    clearInterval(timer);
  }
  const record = await store.get(ref);
  if (record === undefined) throw new Error(`task ${ref.id} has been removed from the store`);
  return record;
}

/** Reads a task's journal until the task has ended. Returns its last record. */
export async function followTask(store: TaskStore, ref: TaskRef, options: FollowOptions = {}): Promise<TaskRecord> {
  const { onEntry, onRecord, token = new CancellationToken({ name: 'follow' }), isLive } = options;
  if (isLive) return followLive(store, ref, options);
  let wake = Promise.withResolvers<void>();
  const watch = await store.watch(ref, () => wake.resolve());
  let after = 0;
  try {
    for (;;) {
      // Don't move this below the read: a change in between must wake us.
      wake = Promise.withResolvers();
      const record = await store.get(ref);
      if (record === undefined) throw new Error(`task ${ref.id} has been removed from the store`);
      for (;;) {
        const entries = onEntry === undefined ? [] : await store.read(ref, { after });
        if (entries.length === 0) break;
        for (const entry of entries) if (onEntry!(entry) === 'stop') return record;
        after = entries.at(-1)!.position;
      }
      if (isFinalStatus(record.status) || (await onRecord?.(record)) === 'stop' || token.isCancelled) return record;
      await nextLook(wake, token);
    }
  } finally {
    await watch[Symbol.asyncDispose]();
  }
}

async function nextLook(wake: PromiseWithResolvers<void>, token: CancellationToken): Promise<void> {
  const timer = token.clock.setTimer(POLL_INTERVAL_MS, () => wake.resolve());
  try {
    await waitUntilLevel(wake.promise, token, 'drain');
  } finally {
    timer[Symbol.dispose]();
  }
}
