import type { CancellationToken, Policy, RunEvent, StopMode } from '@whoa/core';
import type { World } from '@whoa/core/embed';
import type { HookError, Hooks } from '@whoa/core/internal';
import type { FinalStatus } from '../status.ts';
import type { CreateReceipt, TaskStore } from '../store.ts';
import type { NewTask, TaskRef, TaskResponse } from '../task.ts';
import type { TaskApprovals } from './approvals.ts';
import type { Background } from './background.ts';
import type { EventChannel } from './claim/channel.ts';
import type { CancellationChecker } from './claim/checker.ts';
import type { Work } from './work.ts';

/** What a runner tells its hooks. */
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

/** What a runner needs. Only `store` and `agents` are required. */
export interface RunnerOptions {
  readonly store: TaskStore;
  /** What tasks can run, by the name they ask for. */
  readonly agents: Readonly<Record<string, Work>>;
  /** This worker's name; must be nobody else's. */
  readonly worker?: string;
  readonly leaseMs?: number;
  /** How often a worker with room asks for tasks, and a checker is asked, in case nothing else happens. */
  readonly pollMs?: number;
  /** Events that can wait are written this often while somebody reads along. */
  readonly flushMs?: number;
  /** And this often while nobody does. Ends of turns and calls never wait. */
  readonly unwatchedFlushMs?: number;
  /** Cancels of this process, by message. */
  readonly channel?: EventChannel;
  /** Asked after the claim, before each turn and each wave, and every `pollMs` in between. */
  readonly cancellationChecker?: CancellationChecker;
  /** What a checker that fails means. It is reported either way. */
  readonly whenCheckerFails?: 'ignore' | 'cancel';
  readonly approvals?: TaskApprovals;
  /** Keeps what tasks leave running on purpose. */
  readonly background?: Background;
  readonly hooks?: Hooks<RunnerEvent | HookError>;
  readonly world?: World;
}

export interface WorkOptions {
  readonly policy?: Policy;
  /** False: return at once, with the task's status, if another worker holds it or its turn has not come. */
  readonly wait?: boolean;
  /** Cancels the task, in the store too. */
  readonly token?: CancellationToken;
  readonly signal?: AbortSignal;
  /** Called with everything that happens while an agent runs the task here, as it happens. It cannot slow the run down. */
  readonly onEvent?: (event: RunEvent) => unknown;
}

/** A task that was created and is being run. */
export interface StartedTask extends TaskRef {
  /** Resolves when it has ended. If it rejects and nobody waits for it, that is a `store-error` of the runner. */
  readonly response: Promise<TaskResponse>;
}

/** Runs tasks in this process. Dispose it to hand back what it has not finished. */
export interface Runner extends AsyncDisposable {
  readonly worker: string;
  /** Tasks at work now. */
  readonly live: number;
  /** Creates a task and begins to run it here. Resolves as soon as it is kept, so that others can be told of it. */
  start(task: NewTask, options?: WorkOptions): Promise<StartedTask>;
  /** Creates a task and runs it here. Its answer always says what the store says. */
  run(task: NewTask, options?: WorkOptions): Promise<TaskResponse>;
  /** Runs a task that exists, waiting for its turn or for its worker's lease to end. Rejects with `LeaseLostError`. */
  work(task: TaskRef, options?: Omit<WorkOptions, 'policy'>): Promise<TaskResponse>;
  /** Takes tasks that nobody works on, also those of workers that died, `concurrency` at a time. */
  serve(options?: { readonly concurrency?: number }): Promise<void>;
  /**
   * Takes no more, and hands back what it has not finished. Calls under way may finish as `how` says, `graceful` by default;
   * disposing means `now`. Asked again, it can only become harder.
   */
  stop(mode?: StopMode): Promise<void>;
  /** Replaces the checker, also for tasks under way; `undefined` removes it. */
  setCancellationChecker(checker: CancellationChecker | undefined): void;
  /** Obeys the cancel messages of one more channel, until what it returns is disposed. */
  listen(channel: EventChannel): Disposable;
}

/** Thrown when a task was not let in: the conversation's policy is `reject`, or too many wait. */
export class TaskRejectedError extends Error {
  override readonly name: string = 'TaskRejectedError';
  readonly code: string = 'TASK_REJECTED';

  constructor() {
    super('Another task of the conversation is under way; send it again later or use another policy');
  }
}

/** Thrown when a task was not created because too much waits already. */
export class StoreFullError extends Error {
  override readonly name: string = 'StoreFullError';
  readonly code: string = 'STORE_FULL';

  constructor({ what, limit }: { readonly what: 'tasks' | 'history'; readonly limit: number }) {
    super(
      what === 'tasks'
        ? `${limit} tasks of this tenant wait for this agent already; try again later, or add workers`
        : `The history of this conversation has more than ${limit} bytes; compact it, or begin another conversation`,
    );
  }
}

/** The id of a task that was created; throws if it was not. */
export function letIn(receipt: CreateReceipt): string {
  if (receipt.answer === 'rejected') throw new TaskRejectedError();
  if (receipt.answer === 'full') throw new StoreFullError(receipt);
  return receipt.task.id;
}
