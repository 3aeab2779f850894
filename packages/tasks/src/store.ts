import type { CancelOptions, CancelReason, CancelReasonInit, Policy, StopLevel } from '@whoa/core';
import type { FinalStatus, TaskStatus } from './status.ts';
import type {
  Command,
  ConversationRecord,
  ConversationRef,
  JournalEntry,
  NewTask,
  NumberedCommand,
  StopOrder,
  TaskOutcome,
  TaskRecord,
  TaskRef,
} from './task.ts';

/**
 * The truth about tasks. Every method is one atomic operation on one task and its conversation; none needs a scan, a
 * lock on anything else, or a connection of its own. Reads and cancels name a tenant: another tenant's task is `unknown`.
 * Time is the store's clock.
 */
export interface TaskStore extends AsyncDisposable {
  readonly name: string;
  /** No journal becomes larger than this. */
  readonly journalBytesMax: number;

  /** Writes a task down as `init`; in a conversation the policy decides, in the same step, what it does to the others. */
  create(task: NewTask, options?: CreateOptions): Promise<CreateReceipt>;

  /** Takes a task that nobody holds: `init` or expired; an expired `cancelling` is yours to settle, not to run. */
  claim(id: string, worker: string, leaseMs: number): Promise<Claim>;
  /** Keeps a claim, and learns what was missed. Throws `LeaseLostError` when the epoch is over. */
  renew(id: string, epoch: number, leaseMs: number): Promise<Orders>;
  /**
   * Adds to the journal and ticks off commands. A batch that arrives twice counts once. Throws `LeaseLostError`, and
   * `JournalFullError` when nothing was written because it would be too much.
   */
  append(id: string, epoch: number, batch: Batch): Promise<Orders>;
  /** Hands a claim back unfinished: the task is `init` again and no attempt is lost. Throws `LeaseLostError`. */
  release(id: string, epoch: number): Promise<ReleaseReceipt>;
  /** Ends a task, keeps the conversation's history, and wakes its successor. Throws `LeaseLostError`. */
  finish(id: string, epoch: number, outcome: TaskOutcome): Promise<FinishReceipt>;

  /** Asks a task to stop, or a conversation: its current task and everything that waits. */
  cancel(
    target: TaskRef | ConversationRef,
    reason?: CancelReasonInit,
    options?: CancelOptions,
  ): Promise<StoreCancelReceipt>;
  /** Leaves the worker of a task something to do. */
  send(task: TaskRef, command: Command, options?: Repeatable): Promise<SendReceipt>;

  get(task: TaskRef): Promise<TaskRecord | undefined>;
  /** A tenant's tasks, newest first. */
  list(filter: ListFilter): Promise<ListPage>;
  /** A piece of the journal, after a position. */
  read(task: TaskRef, options?: ReadOptions): Promise<readonly JournalEntry[]>;
  conversation(ref: ConversationRef): Promise<ConversationRecord | undefined>;

  /** Tasks a worker should look at now, longest overdue first: claimable ones, and ones whose worker is gone. */
  due(options?: { readonly limit?: number; readonly shard?: number }): Promise<readonly string[]>;
  /** Tells of changes, at least once each. A hint proves nothing but the order it carries. Resolves when it listens. */
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
  /** The policy is `reject` and a task lives, or too many wait. Nothing was written. */
  | { readonly answer: 'rejected' };

export type Claim =
  | {
      readonly answer: 'claimed';
      /** `cancelling`: settle it, do not run it. */
      readonly task: TaskRecord;
      readonly orders: Orders;
      /** What was said in the conversation before. */
      readonly history: ConversationRecord['history'];
    }
  /** Another worker has it until then. */
  | { readonly answer: 'held'; readonly until: number }
  /** Not its turn; `until` if only time is missing. */
  | { readonly answer: 'waiting'; readonly until?: number }
  | { readonly answer: 'too-late'; readonly status: FinalStatus }
  | { readonly answer: 'unknown' };

/** What a worker should know. Everything stands in it, every time, so nothing is ever missed. */
export interface Orders {
  /** The store's time. */
  readonly now: number;
  readonly leaseUntil: number;
  readonly stop?: StopOrder;
  readonly commands: readonly NumberedCommand[];
  /** Somebody reads the journal along; write more often. */
  readonly watched: boolean;
}

export interface Batch {
  /** Where the writer believes the journal ends. */
  readonly after: number;
  readonly events: readonly JournalEntry['event'][];
  /** Positions of earlier entries that these events make needless: they are removed in the same step. */
  readonly replaces?: readonly number[];
  /** Numbers of commands that have been carried out. */
  readonly done?: readonly number[];
}

export interface ReleaseReceipt {
  /** `sealed`: it is being cancelled, so settle and finish it. `already`: this epoch had handed it back. */
  readonly answer: 'released' | 'sealed' | 'already';
}

export interface FinishReceipt {
  /** `already`: this epoch had ended it; nothing changed. */
  readonly answer: 'finished' | 'already';
  readonly status: FinalStatus;
  /** The task whose turn it is now. */
  readonly successor?: string;
}

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

export interface ListFilter {
  readonly tenant: string;
  readonly status?: TaskStatus;
  readonly conversation?: string;
  readonly limit?: number;
  /** `next` of the page before. */
  readonly cursor?: string;
}

export interface ListPage {
  readonly tasks: readonly TaskRecord[];
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
       * where nobody else can write what it was read from; without it, ask the store.
       */
      readonly order?: PushedOrder;
    }
  | { readonly type: 'resync' };

/** What the holder of one claim is to do. It cannot become untrue: orders are raised, never taken back. */
export interface PushedOrder {
  readonly epoch: number;
  readonly stop: StopOrder;
}

/** What every store is told when it is made. */
export interface StoreOptions {
  /** How many shards ids are spread over. */
  readonly shards?: number;
  /** A task whose workers died this often fails. */
  readonly attemptsMax?: number;
  /** How long a task is kept after its end. */
  readonly retentionMs?: number;
  /** How long an idle conversation's history is kept. */
  readonly conversationRetentionMs?: number;
  /** How large the journal of one task may become. */
  readonly journalBytesMax?: number;
}

export const ATTEMPTS_MAX = 3;
export const RETENTION_MS: number = 7 * 24 * 3_600_000;
export const CONVERSATION_RETENTION_MS: number = 90 * 24 * 3_600_000;
export const COMMANDS_MAX = 100;
/** A command that is sent again is recognised until so many newer ones were sent to its task. */
export const NONCES_MAX = 100;
export const JOURNAL_BYTES_MAX: number = 16 * 1024 * 1024;
export const LIST_LIMIT = 100;
export const READ_LIMIT = 1_000;
