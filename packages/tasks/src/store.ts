import type { CancelReason, CancelReasonInit, Json, Policy, StopLevel } from '@whoa/core';
import type { CancelOptions } from '@whoa/core/embed';
import type {
  Beat,
  BeatAnswer,
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  HeldTask,
  Orders,
  SessionRef,
  SweepAnswer,
  TakeAnswer,
  TakeRequest,
  TaskLoad,
} from './delivery.ts';
import type {
  ConversationPage,
  PageRequest,
  PauseTarget,
  QueuePage,
  TaskCounts,
  TenantPage,
  WorkerPage,
} from './overview.ts';
import type { FinalStatus, TaskStatus } from './status.ts';
import type {
  ConversationRecord,
  ConversationRef,
  JournalEntry,
  KeyRef,
  NewTask,
  StopOrder,
  TaskActivity,
  TaskCommand,
  TaskHead,
  TaskOutcome,
  TaskRecord,
  TaskRef,
} from './task.ts';

/**
 * Stores tasks and delivers them to workers. Every method is one atomic operation on one task and its conversation, or
 * on one worker's session. None scans or locks anything else. Reads and cancels name a tenant: another tenant's task is
 * `unknown`. All times are from the store's clock.
 *
 * A worker's write counts if and only if the task's epoch, session and claim match the worker's and the task has not
 * ended. Time never decides this. Leases only decide when a task is taken away from a worker.
 */
export interface TaskStore extends AsyncDisposable {
  readonly name: string;
  /**
   * The number of domains. A domain is what one atomic operation can reach: the whole database, or one shard on Redis.
   */
  readonly domains: number;
  /** The maximum size of a journal. */
  readonly maxJournalBytes: number;

  /**
   * Creates a task as `init`. In a conversation, the policy decides in the same step what happens to the other tasks.
   */
  create(task: NewTask, options?: CreateOptions): Promise<CreateReceipt>;

  /**
   * Takes up to `limit` ready tasks for a session, fairly across tenants. A session makes one take at a time. Repeating
   * the same `number` returns the same tasks, so a lost response loses no task. A take that returns fewer tasks than
   * `limit` parks the worker: it gets a `work` hint when a task becomes ready for one of its agents.
   */
  take(request: TakeRequest): Promise<TakeAnswer>;
  /** Claims one task by its id for a session. Repeating the same `claim` returns the same result. */
  claim(id: string, request: ClaimRequest): Promise<ClaimAnswer>;
  /** Loads what a task's work needs beside its record: its inputs and the earlier messages. Throws `LeaseLostError`. */
  load(claim: ClaimRef): Promise<TaskLoad>;
  /** Keeps a session alive, confirms orders, and returns the orders that are not confirmed yet. */
  beat(beat: Beat): Promise<BeatAnswer>;
  /** Returns the tasks that a session holds according to the store. */
  held(session: SessionRef): Promise<readonly HeldTask[]>;
  /**
   * Frees at most `limit` tasks of sessions whose lease expired, and removes at most `limit` ended tasks past their
   * retention. Call it again while `more` is true.
   */
  sweep(options?: { readonly domain?: number; readonly limit?: number }): Promise<SweepAnswer>;

  /**
   * Appends to the journal and marks commands as done. A batch that arrives twice counts once. Throws `LeaseLostError`,
   * and `JournalFullError` when the batch would exceed the limit; then nothing was written.
   */
  append(claim: ClaimRef, batch: Batch): Promise<Orders>;
  /**
   * Hands a claim back unfinished. It costs no attempt; a task in `cancelling` stays there. The claim that was taken away
   * last can still be handed back, which takes its crash back; repeat it until it is answered. Throws `LeaseLostError`.
   */
  release(claim: ClaimRef): Promise<ReleaseReceipt>;
  /** Ends a task, stores the conversation's history, and wakes its successor. Throws `LeaseLostError`. */
  finish(claim: ClaimRef, outcome: TaskOutcome): Promise<FinishReceipt>;

  /** Asks a task to stop, or a conversation: its current task and all waiting tasks. */
  cancel(
    target: TaskRef | ConversationRef,
    reason?: CancelReasonInit,
    options?: CancelOptions,
  ): Promise<StoreCancelReceipt>;
  /** Sends a command to the worker of a task. */
  send(task: TaskRef, command: TaskCommand, options?: Repeatable): Promise<SendReceipt>;

  get(task: TaskRef): Promise<TaskRecord | undefined>;
  /** Finds the task that was created under a key. */
  find(ref: KeyRef): Promise<TaskRecord | undefined>;
  /** Lists a tenant's tasks, newest first. */
  list(filter: ListFilter): Promise<ListPage>;
  /** Reads part of the journal, after a position. */
  read(task: TaskRef, options?: ReadOptions): Promise<readonly JournalEntry[]>;
  conversation(ref: ConversationRef): Promise<ConversationRecord | undefined>;

  /** Counts a tenant's tasks by status, up to a limit. */
  counts(filter: { readonly tenant: string }): Promise<TaskCounts>;
  /** Lists the tenants that have tasks. For operators: it crosses tenants. */
  tenants(page?: PageRequest): Promise<TenantPage>;
  /** Lists the workers that hold or wait for tasks. For operators: it crosses tenants. */
  workers(options?: { readonly limit?: number }): Promise<WorkerPage>;
  /** Lists the queues that are not empty, and what is paused. For operators: it crosses tenants. */
  queues(page?: PageRequest): Promise<QueuePage>;
  /**
   * Returns what one of the store's clients found out for all, less than `maxAgeMs` ago; `undefined` while the first of them
   * does. If that is too long ago, this client calls `find`: at most one does in that time. For figures, not for decisions.
   */
  findOnce<T extends Json>(maxAgeMs: number, find: () => Promise<T | undefined>): Promise<T | undefined>;
  /** Lists the names of a tenant's conversations. */
  conversations(page: PageRequest & { readonly tenant: string }): Promise<ConversationPage>;

  /**
   * Stops or resumes the delivery of an agent's or a tenant's tasks. Tasks that run go on, new ones are accepted and
   * wait, and cancels work as always.
   */
  pause(target: PauseTarget, isPaused: boolean): Promise<void>;
  /** Removes an ended task with its journal, or an idle conversation with its history, before its retention ends. */
  remove(target: TaskRef | ConversationRef): Promise<RemoveReceipt>;

  /**
   * Reports changes, at least once each. Don't trust a hint, only the order it carries. Resolves once it is listening.
   * Workers pass their name and get hints about their tasks and about new work; other callers pass a tenant.
   */
  watch(filter: WatchFilter, listener: (hint: Hint) => void): Promise<AsyncDisposable>;
}

/** `live`: nothing was removed, because it has not ended yet. `unknown`: there is no such task or conversation. */
export type RemoveReceipt = { readonly answer: 'removed' | 'live' | 'unknown' };

/** Options of a request that can be repeated when its response was lost, and then counts once. */
export interface Repeatable {
  /**
   * A unique name for this request. Repeating the request with the same name returns the first result. If you leave it
   * out, the store creates one; `UnknownOutcomeError` contains it.
   */
  readonly nonce?: string | undefined;
}

export interface CreateOptions extends Repeatable {
  /** What the task does to the other tasks of its conversation. Defaults to `replace`. */
  readonly policy?: Policy;
}

/** The result of creating a task. */
export type CreateReceipt =
  | {
      readonly answer: 'created';
      readonly task: TaskRecord;
      /** Tasks that this one ended or is ending. */
      readonly superseded: readonly string[];
      /** The task that received the message, under `steer`. */
      readonly steered?: string;
    }
  /** A task with this key already exists, and a different request created it: a repeat, or one with another input. */
  | { readonly answer: 'duplicate'; readonly task: TaskRecord; readonly isSameInput: boolean }
  /** The policy is `reject` and a task is live. Nothing was written. */
  | { readonly answer: 'rejected' }
  /**
   * A limit was reached: ready `tasks` of this tenant for this agent, tasks in the `queue` of the conversation, or
   * `history` bytes in it. Nothing was written. Try again later, or compact the conversation.
   */
  | { readonly answer: 'full'; readonly what: 'tasks' | 'queue' | 'history'; readonly limit: number };

export interface Batch {
  /** The last position of the journal, as the writer knows it. */
  readonly after: number;
  readonly events: readonly JournalEntry['event'][];
  /** Positions of earlier entries that these events replace. They are removed in the same step. */
  readonly replaces?: readonly number[];
  /** Numbers of the commands that have been carried out. */
  readonly done?: readonly number[];
  /** The work made progress: earlier worker crashes no longer count against the task. */
  readonly progress?: boolean;
  /** What the task has done so far. The last one is kept. Its `questions` count while this claim holds the task. */
  readonly activity?: TaskActivity;
}

export interface ReleaseReceipt {
  /** `already`: this claim was handed back or taken away before. */
  readonly answer: 'released' | 'already';
}

export interface FinishReceipt {
  /** `already`: this claim ended the task before; nothing changed. */
  readonly answer: 'finished' | 'already';
  readonly status: FinalStatus;
  /** The task that runs next. */
  readonly successor?: string;
}

/** The result of a cancel. After `accepted` the task can only end `cancelled`. */
export type StoreCancelReceipt =
  | {
      readonly answer: 'accepted' | 'escalated' | 'already';
      readonly status: TaskStatus;
      readonly level: StopLevel;
      /** The reason that is kept: the first one, not necessarily yours. */
      readonly reason: CancelReason;
      readonly killAt: number;
    }
  | { readonly answer: 'too-late'; readonly status: FinalStatus }
  | { readonly answer: 'unknown' };

/** The result of sending a command to a running task. */
export type SendReceipt =
  | { readonly answer: 'accepted'; readonly number: number }
  | { readonly answer: 'too-late'; readonly status: TaskStatus }
  /** Too many commands are waiting for the worker. */
  | { readonly answer: 'full' }
  | { readonly answer: 'unknown' };

export interface ReadOptions {
  readonly after?: number;
  readonly limit?: number;
  /** How long the caller will keep reading. Until then the worker writes more often. */
  readonly watchMs?: number;
}

/** Which tasks to list, newest first. */
export interface ListFilter {
  readonly tenant: string;
  readonly status?: TaskStatus;
  readonly conversation?: string;
  /** Only background tasks that belong to this conversation: their keys are from `createBackgroundKey`. */
  readonly backgroundOf?: string;
  readonly limit?: number;
  /** `next` of the previous page. */
  readonly cursor?: string;
}

/** One page of a list of tasks. */
export interface ListPage {
  /** Without inputs, which may be large. */
  readonly tasks: readonly TaskHead[];
  readonly next?: string;
}

/**
 * Every field that is set must match. Callers that act for a user must set the tenant; only workers may leave it out.
 */
export interface WatchFilter {
  readonly tenant?: string;
  readonly worker?: string;
  readonly conversation?: string;
  readonly id?: string;
}

/** A change to a task. `resync`: any task may have changed. */
export type Hint =
  | {
      readonly type: 'status' | 'cancel' | 'command' | 'wake' | 'journal';
      readonly id: string;
      readonly tenant: string;
      readonly worker?: string;
      readonly conversation?: string;
      /**
       * The order itself, with `cancel`, for a watching worker. A store includes it only when no other process can
       * write to the source it was read from. Without it, the worker must beat.
       */
      readonly order?: PushedOrder;
    }
  /** A task became ready for an agent of this worker, which was waiting for one. */
  | { readonly type: 'work'; readonly worker: string; readonly domain: number; readonly agent: string }
  | { readonly type: 'resync' };

/** What the holder of one claim must do. It never becomes invalid: orders only become stricter. */
export interface PushedOrder {
  readonly epoch: number;
  /** The claim that the order is for. If others can read pushed orders, only its signature (`signatureOf`). */
  readonly claim: string;
  readonly orderNumber: number;
  readonly stop: StopOrder;
}
