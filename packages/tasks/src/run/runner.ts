import type { CancellationToken, HookError, Hooks, Policy, World } from '@whoa/core';
import type { FinalStatus } from '../status.ts';
import type { TaskStore } from '../store.ts';
import type { NewTask, TaskRef, TaskResponse } from '../task.ts';
import type { Approvals } from './approvals.ts';
import type { EventChannel } from './channel.ts';
import type { Work } from './work.ts';

export type RunnerEvent =
  | { readonly type: 'task-start'; readonly tenant: string; readonly id: string; readonly epoch: number }
  | {
      readonly type: 'task-end';
      readonly tenant: string;
      readonly id: string;
      readonly status: FinalStatus | 'released' | 'lost';
    }
  /** A `cancellationChecker` threw or rejected. */
  | { readonly type: 'checker-error'; readonly id: string; readonly error: unknown }
  /** The store failed; it is tried again. */
  | { readonly type: 'store-error'; readonly error: unknown };

export interface RunnerOptions {
  readonly store: TaskStore;
  /** What tasks can run, by the name they ask for. */
  readonly agents: Readonly<Record<string, Work>>;
  /** This worker's name; must be nobody else's. */
  readonly worker?: string;
  readonly leaseMs?: number;
  /** How often the store is asked about every live task, in case nothing else brought the news. */
  readonly pollMs?: number;
  /** Events that can wait are written this often while somebody reads along. */
  readonly flushMs?: number;
  /** And this often while nobody does. Ends of turns and calls never wait. */
  readonly unwatchedFlushMs?: number;
  /** Cancels of this process, by message. */
  readonly channel?: EventChannel;
  /** Your own word on whether a task should stop; asked at every poll. */
  readonly cancellationChecker?: (taskId: string) => boolean | Promise<boolean>;
  /** What a checker that fails means. It is reported either way. */
  readonly whenCheckerFails?: 'ignore' | 'cancel';
  readonly approvals?: Approvals;
  readonly hooks?: Hooks<RunnerEvent | HookError>;
  readonly world?: World;
}

export interface WorkOptions {
  readonly policy?: Policy;
  /** Cancels the task, in the store too. */
  readonly token?: CancellationToken;
  readonly signal?: AbortSignal;
}

/** Runs tasks in this process. Dispose it to hand back what it has not finished. */
export interface Runner extends AsyncDisposable {
  readonly worker: string;
  /** Tasks at work now. */
  readonly live: number;
  /** Creates a task and runs it here. Its answer always says what the store says. */
  run(task: NewTask, options?: WorkOptions): Promise<TaskResponse>;
  /** Runs a task that exists, waiting for its turn or for its worker's lease to end. Rejects with `LeaseLostError`. */
  work(task: TaskRef, options?: Omit<WorkOptions, 'policy'>): Promise<TaskResponse>;
  /** Takes tasks that nobody works on, also those of workers that died, `concurrency` at a time. */
  serve(options?: { readonly concurrency?: number }): Promise<void>;
}

/** Thrown when a task was not let in: the conversation's policy is `reject`, or too many wait. */
export class TaskRejectedError extends Error {
  override readonly name: string = 'TaskRejectedError';
  readonly code: string = 'TASK_REJECTED';

  constructor() {
    super('Another task of the conversation is under way; send it again later or use another policy');
  }
}
