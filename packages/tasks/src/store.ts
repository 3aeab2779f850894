import type { CancelReason, CancelReasonInit, Policy, StopLevel } from '@whoa/core';
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
import type { PageRequest, TaskCounts, TenantPage, WorkerPage } from './overview.ts';
import type { FinalStatus, TaskStatus } from './status.ts';
import type {
  ConversationRecord,
  ConversationRef,
  JournalEntry,
  KeyRef,
  NewTask,
  StopOrder,
  TaskCommand,
  TaskHead,
  TaskOutcome,
  TaskRecord,
  TaskRef,
} from './task.ts';

/**
 * The truth about tasks, and how they reach workers. Every method is one atomic operation on one task and its
 * conversation, or on one worker's session; none needs a scan or a lock on anything else. Reads and cancels name a tenant:
 * another tenant's task is `unknown`. Time is the store's clock.
 *
 * A worker's write counts if and only if the task's epoch, session and claim are its own and the task has not ended; never
 * by time. Leases only decide when a task is taken away.
 */
export interface TaskStore extends AsyncDisposable {
  readonly name: string;
  /** How many domains there are: what one atomic step reaches. The whole database; on Redis one shard. */
  readonly domains: number;
  /** No journal becomes larger than this. */
  readonly maxJournalBytes: number;

  /** Creates a task as `init`; in a conversation the policy decides, in the same step, what it does to the others. */
  create(task: NewTask, options?: CreateOptions): Promise<CreateReceipt>;

  /**
   * Takes up to `limit` tasks that are ready, fairly over tenants, for a session. One take at a time per session: the same
   * `number` again repeats the answer, so a lost answer loses no task. A take that comes back short parks the worker: it is
   * rung (`work`) when something becomes ready for one of its agents.
   */
  take(request: TakeRequest): Promise<TakeAnswer>;
  /** Claims one task by its id for a session. The same `claim` again repeats the answer. */
  claim(id: string, request: ClaimRequest): Promise<ClaimAnswer>;
  /** What a task's work needs beside its record: its inputs, and what was said before. Throws `LeaseLostError`. */
  load(claim: ClaimRef): Promise<TaskLoad>;
  /** Keeps a session alive, confirms orders, and returns the orders that are not confirmed yet. */
  beat(beat: Beat): Promise<BeatAnswer>;
  /** What the store believes a session holds. */
  held(session: SessionRef): Promise<readonly HeldTask[]>;
  /** Frees tasks of sessions that did not beat in time, at most `limit`; call it again while `more`. */
  sweep(options?: { readonly domain?: number; readonly limit?: number }): Promise<SweepAnswer>;

  /**
   * Adds to the journal and ticks off commands. A batch that arrives twice counts once. Throws `LeaseLostError`, and
   * `JournalFullError` when nothing was written because it would be too much.
   */
  append(claim: ClaimRef, batch: Batch): Promise<Orders>;
  /** Hands a claim back unfinished: no attempt is lost; a task that is being cancelled stays so. Throws `LeaseLostError`. */
  release(claim: ClaimRef): Promise<ReleaseReceipt>;
  /** Ends a task, keeps the conversation's history, and wakes its successor. Throws `LeaseLostError`. */
  finish(claim: ClaimRef, outcome: TaskOutcome): Promise<FinishReceipt>;

  /** Asks a task to stop, or a conversation: its current task and everything that waits. */
  cancel(
    target: TaskRef | ConversationRef,
    reason?: CancelReasonInit,
    options?: CancelOptions,
  ): Promise<StoreCancelReceipt>;
  /** Leaves the worker of a task something to do. */
  send(task: TaskRef, command: TaskCommand, options?: Repeatable): Promise<SendReceipt>;

  get(task: TaskRef): Promise<TaskRecord | undefined>;
  /** The task that was created under a key. */
  find(ref: KeyRef): Promise<TaskRecord | undefined>;
  /** A tenant's tasks, newest first. */
  list(filter: ListFilter): Promise<ListPage>;
  /** A piece of the journal, after a position. */
  read(task: TaskRef, options?: ReadOptions): Promise<readonly JournalEntry[]>;
  conversation(ref: ConversationRef): Promise<ConversationRecord | undefined>;

  /** How many tasks of a tenant have each status, counted up to a limit. */
  counts(filter: { readonly tenant: string }): Promise<TaskCounts>;
  /** Tenants that have tasks. For operators: it crosses tenants. */
  tenants(page?: PageRequest): Promise<TenantPage>;
  /** Workers that hold tasks or wait for some. For operators: it crosses tenants. */
  workers(options?: { readonly limit?: number }): Promise<WorkerPage>;

  /**
   * Reports changes, at least once each. A hint proves nothing but the order it carries. Resolves when it listens. Workers
   * name themselves and hear what concerns their tasks and rings for work; others name a tenant.
   */
  watch(filter: WatchFilter, listener: (hint: Hint) => void): Promise<AsyncDisposable>;
}

/** What can be asked again when its answer was lost, and then counts once. */
export interface Repeatable {
  /**
   * A name of your own for this request, used for no other: the same request with the same name is answered as it was
   * the first time. Without one the store makes one; `UnknownOutcomeError` says which.
   */
  readonly nonce?: string | undefined;
}

export interface CreateOptions extends Repeatable {
  /** What the task does to others of its conversation; `replace` unless said otherwise. */
  readonly policy?: Policy;
}

/** What became of a request to create a task. */
export type CreateReceipt =
  | {
      readonly answer: 'created';
      readonly task: TaskRecord;
      /** Tasks that this one ended or is ending. */
      readonly superseded: readonly string[];
      /** The task that was given the message, under `steer`. */
      readonly steered?: string;
    }
  /** It exists under this key already, and was not created by this very request. */
  | { readonly answer: 'duplicate'; readonly task: TaskRecord }
  /** The policy is `reject` and a task lives, or too many wait in the conversation. Nothing was written. */
  | { readonly answer: 'rejected' }
  /**
   * Too much waits already: `tasks` of this tenant for this agent, or `history` bytes in the conversation. Nothing was
   * written. Try again later, or compact the conversation.
   */
  | { readonly answer: 'full'; readonly what: 'tasks' | 'history'; readonly limit: number };

export interface Batch {
  /** Where the writer believes the journal ends. */
  readonly after: number;
  readonly events: readonly JournalEntry['event'][];
  /** Positions of earlier entries that these events make needless: they are removed in the same step. */
  readonly replaces?: readonly number[];
  /** Numbers of commands that have been carried out. */
  readonly done?: readonly number[];
  /** The work got on: earlier deaths of workers no longer count against the task. */
  readonly progress?: boolean;
}

export interface ReleaseReceipt {
  /** `already`: this claim had handed it back. */
  readonly answer: 'released' | 'already';
}

export interface FinishReceipt {
  /** `already`: this claim had ended it; nothing changed. */
  readonly answer: 'finished' | 'already';
  readonly status: FinalStatus;
  /** The task whose turn it is now. */
  readonly successor?: string;
}

/** What became of a cancel. After `accepted` the task can only end `cancelled`. */
export type StoreCancelReceipt =
  | {
      readonly answer: 'accepted' | 'escalated' | 'already';
      readonly status: TaskStatus;
      readonly level: StopLevel;
      /** The winning reason: the first one, not necessarily yours. */
      readonly reason: CancelReason;
      readonly killAt: number;
    }
  | { readonly answer: 'too-late'; readonly status: FinalStatus }
  | { readonly answer: 'unknown' };

/** What became of a command to a running task. */
export type SendReceipt =
  | { readonly answer: 'accepted'; readonly number: number }
  | { readonly answer: 'too-late'; readonly status: TaskStatus }
  /** Too many commands wait for the worker. */
  | { readonly answer: 'full' }
  | { readonly answer: 'unknown' };

export interface ReadOptions {
  readonly after?: number;
  readonly limit?: number;
  /** I shall read on for this long: have the worker write more often until then. */
  readonly watchMs?: number;
}

/** Which tasks to list, newest first. */
export interface ListFilter {
  readonly tenant: string;
  readonly status?: TaskStatus;
  readonly conversation?: string;
  readonly limit?: number;
  /** `next` of the page before. */
  readonly cursor?: string;
}

/** One page of a list of tasks. */
export interface ListPage {
  /** Without inputs: they may be large. */
  readonly tasks: readonly TaskHead[];
  readonly next?: string;
}

/** Every field given must match. Whoever acts for a person names the tenant; only workers may leave it out. */
export interface WatchFilter {
  readonly tenant?: string;
  readonly worker?: string;
  readonly conversation?: string;
  readonly id?: string;
}

/** Something happened to a task. `resync`: something may have happened to any. */
export type Hint =
  | {
      readonly type: 'status' | 'cancel' | 'command' | 'wake' | 'journal';
      readonly id: string;
      readonly tenant: string;
      readonly worker?: string;
      readonly conversation?: string;
      /**
       * With `cancel`, for those who watch the worker: the order itself. It is the store's own word, so a store adds it only
       * where nobody else can write what it was read from; without it, beat.
       */
      readonly order?: PushedOrder;
    }
  /** Something became ready for an agent of this worker, which waited for it. */
  | { readonly type: 'work'; readonly worker: string; readonly domain: number; readonly agent: string }
  | { readonly type: 'resync' };

/** What the holder of one claim is to do. It cannot become untrue: orders are raised, never taken back. */
export interface PushedOrder {
  readonly epoch: number;
  /** The claim it is for; where others can read what is pushed, only its signature (`signatureOf`). */
  readonly claim: string;
  readonly orderNumber: number;
  readonly stop: StopOrder;
}

/** What every store is told when it is made. */
export interface StoreOptions {
  /**
   * How many shards ids are spread over. It is stored at the first connect. To have more, name what it was before too:
   * `[1, 16]`. Then new tasks are spread over 16, and everything else stays where it is.
   */
  readonly shards?: number | readonly number[];
  /** A task whose workers died this often without progress fails. */
  readonly maxAttempts?: number;
  /** How long a task is kept after its end. */
  readonly retentionMs?: number;
  /** How long an idle conversation's history is kept. */
  readonly conversationRetentionMs?: number;
  /** How large the journal of one task may become. */
  readonly maxJournalBytes?: number;
  /** How many tasks of one tenant may be ready for one agent; beyond that `create` returns `full`. */
  readonly maxReady?: number;
  /** How many tasks of one tenant may run at once. Exact on one shard; with several, each has its share. */
  readonly maxRunningPerTenant?: number;
  /** How many tasks of one agent may run at once. Exact on one shard; with several, each has its share. */
  readonly maxRunningPerAgent?: number;
}
