import type { CancellationToken, Policy, Run, RunEvent, StopMode } from '@whoa/core';
import type { CancellationStore } from '../cancellations/cancellation-store.ts';
import type { OfferSource } from '../delivery/offer-source.ts';
import type { WorkerContextOptions } from '../delivery/worker-context.ts';
import type { CreateReceipt } from '../store.ts';
import type { NewTask, TaskRecord, TaskRef, TaskResponse } from '../task.ts';
import type { AdoptOptions } from './adopted-run.ts';
import type { Background } from './background.ts';
import type { EventChannel } from './channel.ts';
import type { TaskApprovals } from './questions/approvals.ts';
import type { TaskHandler } from './work.ts';

/** Decides whether a task should stop. `task` has its key, conversation and tenant. True means stop `now`. */
export type CancellationChecker = (taskId: string, task: TaskRecord) => boolean | Promise<boolean>;

/** Which versions of an agent may resume a task. */
export type ResumeRule = 'any' | 'same-version';

/** Options of a runner. Only `store` and `agents` are required. */
export interface RunnerOptions extends WorkerContextOptions {
  /** What tasks can run, by agent name. */
  readonly agents: Readonly<Record<string, TaskHandler>>;
  /** Carries cancel messages inside this process. */
  readonly channel?: EventChannel | undefined;
  /**
   * Called after the claim, before each turn and each wave, and every `pollIntervalMs` in between. A failure is reported, and the task
   * continues.
   */
  readonly cancellationChecker?: CancellationChecker | undefined;
  /**
   * A store in which tasks are cancelled by their ids. Each task is registered in it at its start and looked up where a checker
   * is called; a cancel is also heard immediately, and the final status is written. A failure is a `checker-error`, and the task
   * continues.
   */
  readonly cancellations?: CancellationStore | undefined;
  readonly approvals?: TaskApprovals | undefined;
  /**
   * What happens to a task whose worker was lost when this worker has another version of its agent, as after a deploy.
   * `any` resumes it and tells the model that its instructions or tools were changed: a deploy must not fail what runs.
   * `same-version` fails it, with what was done so far. Defaults to `any`.
   */
  readonly resume?: ResumeRule | undefined;
  /**
   * What happens when the provider of an agent's model is overloaded or cannot be reached, after the model's own retries. The
   * task is handed back and takes no slot; after a while a worker repeats the turn, and the model sees nothing of it.
   * It fails when `maxMs` have passed since the first failure without a complete reply. The first wait is `backoffMs`
   * (5,000); it doubles up to `maxBackoffMs` (60,000), or is as long as the provider asks, and each is up to twice as long
   * at random. Defaults to none: the task fails immediately.
   */
  readonly waitForProvider?:
    | { readonly maxMs: number; readonly backoffMs?: number | undefined; readonly maxBackoffMs?: number | undefined }
    | undefined;
  /** Keeps work that tasks leave running on purpose. */
  readonly background?: Background | undefined;
}

export interface RunTaskOptions {
  readonly policy?: Policy | undefined;
  /** False: return immediately, with the task's status, if another worker holds it or it is not ready. */
  readonly wait?: boolean | undefined;
  /** Cancels the task, including in the store. */
  readonly token?: CancellationToken | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with every event of the agent's run in this process, as it happens. It cannot slow the run down. */
  readonly onEvent?: ((event: RunEvent) => unknown) | undefined;
}

export interface ServeOptions {
  /** How many tasks run at the same time. Defaults to 16. */
  readonly concurrency?: number | undefined;
  /**
   * Takes tasks of these agents only. Defaults to all of the runner's. With an empty list it takes only tasks that must
   * be settled, and frees those of crashed workers: for a queue in front of the store that calls `work`.
   */
  readonly agents?: readonly string[] | undefined;
  /** Also takes what an engine offers. For engines, which serve a runner themselves. */
  readonly offers?: OfferSource | undefined;
}

/** A task that was created and is running. */
export interface StartedTask extends TaskRef {
  /** Resolves when the task has ended. If it rejects and no caller awaits it, the runner reports a `store-error`. */
  readonly response: Promise<TaskResponse>;
}

/** A run that became a task after its start. */
export interface AdoptedTask {
  readonly run: Run;
  /**
   * Resolves when the task has ended. Rejects if the store failed; the run then continues without a task, and other
   * processes cannot stop it.
   */
  readonly response: Promise<TaskResponse>;
}

/** Runs tasks in this process. Dispose it to hand back unfinished tasks. */
export interface Runner extends AsyncDisposable {
  readonly worker: string;
  /** How many tasks run now. */
  readonly live: number;
  /** Creates a task and starts to run it here. Resolves as soon as it is stored, so that you can pass its id on. */
  start(task: NewTask, options?: RunTaskOptions): Promise<StartedTask>;
  /** Creates a task and runs it here. The response always matches the store. */
  run(task: NewTask, options?: RunTaskOptions): Promise<TaskResponse>;
  /**
   * Starts a run immediately and makes it a task, so that other processes can see, follow and stop it. `start` must pass its
   * options on to `agent.run`. The run's calls wait until the task is claimed here; if another worker took the task, or
   * it was cancelled before, the run is cancelled.
   */
  adopt(
    task: Pick<NewTask, 'tenant' | 'agent' | 'input'>,
    start: (options: AdoptOptions) => Run,
    options?: Pick<RunTaskOptions, 'token'>,
  ): AdoptedTask;
  /** Runs an existing task. Waits until it is ready or its worker's lease ends. Rejects with `LeaseLostError`. */
  runExisting(task: TaskRef, options?: Omit<RunTaskOptions, 'policy'>): Promise<TaskResponse>;
  /** Takes tasks that no worker holds, including those of crashed workers, `concurrency` at a time. Call it once. */
  serve(options?: ServeOptions): Promise<void>;
  /**
   * Takes no more tasks, and hands back unfinished ones. `mode` says how calls in progress are stopped; it defaults to
   * `graceful`, and disposing uses `now`. Calling it again can only make the stop harder.
   */
  stop(mode?: StopMode): Promise<void>;
  /** Replaces the checker, including for running tasks; `undefined` removes it. */
  setCancellationChecker(checker: CancellationChecker | undefined): void;
  /** Obeys the cancel messages of one more channel, until the returned object is disposed. */
  listen(channel: EventChannel): Disposable;
}

/** Thrown when a task was rejected: the conversation's policy is `reject`, and another task is live. */
export class TaskRejectedError extends Error {
  override readonly name: string = 'TaskRejectedError';
  readonly code: string = 'TASK_REJECTED';

  constructor() {
    super('Another task of the conversation is running; send this one again later or use another policy');
  }
}

/** Thrown when a task was not created because a limit was reached. */
export class StoreFullError extends Error {
  override readonly name: string = 'StoreFullError';
  readonly code: string = 'STORE_FULL';

  constructor({ what, limit }: Pick<Extract<CreateReceipt, { result: 'full' }>, 'what' | 'limit'>) {
    const words = {
      tasks: `${limit} tasks of this tenant are already waiting for this agent; try again later, or add workers`,
      queue: `${limit} tasks are already waiting in this conversation; try again later`,
      history: `The history of this conversation has more than ${limit} bytes; compact it, or start another conversation`,
    };
    super(words[what]);
  }
}

/** Returns the id of a created task. Throws if it was not created. */
export function requireCreated(receipt: CreateReceipt): string {
  if (receipt.result === 'rejected') throw new TaskRejectedError();
  if (receipt.result === 'full') throw new StoreFullError(receipt);
  return receipt.task.id;
}
