import { CancellationToken } from '@whoa/core';
import { waitUntilLevel } from '@whoa/core/embed';
import { isFinalStatus, type JournalEntry, type TaskRecord, type TaskRef, type TaskStore } from '@whoa/tasks';

/** While we follow, the worker is asked to write more often. */
const WATCH_MS = 5_000;
/** The store is asked again this often, in case no hint came. */
const LOOK_MS = 1_000;

export interface FollowOptions {
  /** `stop` ends the following. */
  readonly onEntry?: (entry: JournalEntry) => 'stop' | undefined;
  /** Asked each time there may be news; `stop` ends the following. */
  readonly onRecord?: (task: TaskRecord) => 'stop' | undefined | Promise<'stop' | undefined>;
  readonly token?: CancellationToken;
}

/** Reads a task's journal along until the task has ended. Answers what is known of it then. */
export async function followTask(store: TaskStore, ref: TaskRef, options: FollowOptions = {}): Promise<TaskRecord> {
  const { onEntry, onRecord, token = new CancellationToken({ name: 'follow' }) } = options;
  let wake = Promise.withResolvers<void>();
  const watch = await store.watch(ref, () => wake.resolve());
  let after = 0;
  try {
    for (;;) {
      // Listen before asking: what happens in between wakes us.
      wake = Promise.withResolvers();
      const record = await store.get(ref);
      if (record === undefined) throw new Error(`task ${ref.id} is no longer kept`);
      for (;;) {
        const entries = onEntry === undefined ? [] : await store.read(ref, { after, watchMs: WATCH_MS });
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
  const timer = token.clock.setTimer(LOOK_MS, () => wake.resolve());
  try {
    await waitUntilLevel(wake.promise, token, 'drain');
  } finally {
    timer[Symbol.dispose]();
  }
}
