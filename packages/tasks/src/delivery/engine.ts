import type { StopMode } from '@whoa/core';
import type { Runner } from '../run/runner.ts';
import type { TaskStore } from '../store.ts';

/** A queue that delivers the tasks of some agents. It decides when a task starts; the store decides everything else. */
export interface TaskEngine extends AsyncDisposable {
  /** Runs tasks when the engine hands them out, and those that must be settled. The runner must not be served otherwise. */
  serve(runner: Runner, options?: { readonly concurrency?: number }): Promise<void>;
  /** Whether the engine can hand out tasks now. */
  isReady(): Promise<boolean>;
  /**
   * Stops the runner, and returns its tasks to the store. `mode` defaults to `graceful`, and disposing uses `now`. The
   * store can be used until the engine is disposed.
   */
  close(mode?: StopMode): Promise<void>;
}

/** Opens an engine: the `engine` of `whoa.config.ts`. Until it is disposed, it offers what this process makes ready. */
export type EngineFactory = (setup: {
  readonly store: TaskStore;
  /** The agents whose tasks go through the engine. */
  readonly agents: readonly string[];
  /** Called with errors that the engine recovers from, such as a lost connection. */
  readonly onError: (error: unknown) => void;
}) => Promise<TaskEngine>;
