import type { Result } from '@modelcontextprotocol/server';
import { followTask, type TaskRecord, type TaskRef, type TaskStore } from '@whoa/tasks';

/** The events of a journal after which a task may be described differently. */
const CHANGES: ReadonlySet<string> = new Set(['run-start', 'approval-question', 'approval-answer']);

interface TaskChangesOptions {
  readonly store: TaskStore;
  /** Returns the current state of a task, or `undefined` if it is no longer kept. */
  readonly describe: (ref: TaskRef) => Promise<Result | undefined>;
  readonly onError: (error: unknown) => void;
}

/**
 * The states of some tasks: how they are now, then each change, until all have ended. A reader that falls behind gets the
 * newest state of each task, so nothing piles up and no task waits for it.
 */
export class TaskChanges implements AsyncIterator<Result, undefined> {
  readonly #options: TaskChangesOptions;
  readonly #stop = new AbortController();
  readonly #changed: Set<TaskRef>;
  readonly #sent = new Map<TaskRef, string>();
  readonly #following: Promise<unknown>;
  #live: number;
  #wake = Promise.withResolvers<void>();

  constructor(tasks: readonly TaskRecord[], options: TaskChangesOptions) {
    this.#options = options;
    this.#changed = new Set(tasks);
    this.#live = tasks.length;
    this.#following = Promise.all(tasks.map((task) => this.#follow(task)));
  }

  async next(): Promise<IteratorResult<Result, undefined>> {
    while (!this.#stop.signal.aborted) {
      const [ref] = this.#changed;
      if (ref !== undefined) {
        this.#changed.delete(ref);
        const state = await this.#options.describe(ref);
        const text = JSON.stringify(state);
        if (state === undefined || this.#sent.get(ref) === text) continue;
        this.#sent.set(ref, text);
        return { value: state, done: false };
      }
      if (this.#live === 0) break;
      this.#wake = Promise.withResolvers();
      await this.#wake.promise;
    }
    return { value: undefined, done: true };
  }

  async return(): Promise<IteratorResult<Result, undefined>> {
    this.#stop.abort('nobody listens');
    this.#wake.resolve();
    await this.#following;
    return { value: undefined, done: true };
  }

  async #follow(task: TaskRecord): Promise<void> {
    const { store, onError } = this.#options;
    const from = { after: task.position, signal: this.#stop.signal, onStoreError: onError };
    try {
      for await (const seen of followTask(store, task, from)) {
        if (seen.type === 'entry' && !CHANGES.has(seen.event.type)) continue;
        this.#changed.add(task);
        this.#wake.resolve();
      }
    } catch (error) {
      // It is no longer kept, or the store was closed: its last state stands.
      onError(error);
    }
    this.#live--;
    this.#wake.resolve();
  }
}
