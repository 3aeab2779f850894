import type { CancelReason, CancelReasonInit, Policy, StopLevel } from '@whoa/core';
import type { CancelOptions } from '@whoa/core/embed';
import type { ChangeSource } from './bus/hint.ts';
import type { WorkerStore } from './delivery/worker-store.ts';
import type { Feed } from './feed/feed.ts';
import type { FinalStatus, TaskStatus } from './ledger/rules/status.ts';
import type { OperatorStore } from './overview.ts';
import type { AnswerReceipt, NewAnswer, QuestionRef } from './question.ts';
import type {
  ConversationRecord,
  ConversationRef,
  JournalEntry,
  KeyRef,
  NewTask,
  TaskCommand,
  TaskRecord,
  TaskRef,
  TaskSummary,
} from './task.ts';

export type { Hint, OfferedTask, PushedOrder, WatchFilter } from './bus/hint.ts';
export type { FinishResult, ReleaseResult } from './delivery/worker-store.ts';
export type { RemoveReceipt } from './overview.ts';

/**
 * Stores tasks and delivers them to workers. Every method is one atomic operation on one task and its conversation, or
 * on one worker's session. None scans or locks anything else. All times are from the store's clock.
 */
export interface TaskStore extends ClientStore, WorkerStore, OperatorStore, AsyncDisposable {
  readonly name: string;
  /** What changed, for consumers. */
  readonly feed: Feed;
}

/** What clients ask of a store. They name a tenant: another tenant's task is `unknown`. */
export interface ClientStore extends ChangeSource {
  /**
   * Creates a task as `init`. In a conversation, the policy decides in the same step what happens to the other tasks.
   */
  create(task: NewTask, options?: CreateOptions): Promise<CreateReceipt>;

  /** Asks a task to stop, or a conversation: its current task and all waiting tasks. */
  cancel(
    target: TaskRef | ConversationRef,
    reason?: CancelReasonInit,
    options?: CancelOptions,
  ): Promise<StoreCancelReceipt>;
  /** Sends a command to the worker of a task. */
  send(task: TaskRef, command: TaskCommand, options?: IdempotencyOptions): Promise<SendReceipt>;
  /** Answers a question. The first answer counts. */
  answer(question: QuestionRef, answer: NewAnswer, options?: IdempotencyOptions): Promise<AnswerReceipt>;

  get(task: TaskRef): Promise<TaskRecord | undefined>;
  /** Finds the task that was created under a key. */
  find(ref: KeyRef): Promise<TaskRecord | undefined>;
  /** Lists a tenant's tasks, newest first. */
  list(filter: ListFilter): Promise<ListPage>;
  /** Reads part of the journal, after a position. */
  read(task: TaskRef, options?: ReadOptions): Promise<readonly JournalEntry[]>;
  conversation(ref: ConversationRef): Promise<ConversationRecord | undefined>;
}

/** Options of a request that can be repeated when its response was lost, and then counts once. */
interface IdempotencyOptions {
  /**
   * A unique name for this request. Repeating the request with the same name returns the first result. If you leave it
   * out, the store creates one; `UnknownOutcomeError` contains it.
   */
  readonly nonce?: string | undefined;
}

interface CreateOptions extends IdempotencyOptions {
  /** What the task does to the other tasks of its conversation. Defaults to `replace`. */
  readonly policy?: Policy | undefined;
}

/** The result of creating a task. */
export type CreateReceipt =
  | {
      readonly result: 'created';
      readonly task: TaskRecord;
      /** Tasks that this one ended or is ending. */
      readonly superseded: readonly string[];
      /** The task that received the message, under `steer`. */
      readonly steered?: string;
    }
  /** A task with this key already exists, and a different request created it: a repeat, or one with another input. */
  | { readonly result: 'duplicate'; readonly task: TaskRecord; readonly isSameInput: boolean }
  /** The policy is `reject` and a task is live. Nothing was written. */
  | { readonly result: 'rejected' }
  /**
   * A limit was reached: ready `tasks` of this tenant for this agent, tasks in the `queue` of the conversation, or
   * `history` bytes in it. Nothing was written. Try again later, or compact the conversation.
   */
  | { readonly result: 'full'; readonly what: 'tasks' | 'queue' | 'history'; readonly limit: number };

/** The result of a cancel. After `accepted` the task can only end `cancelled`. */
export type StoreCancelReceipt =
  | {
      readonly result: 'accepted' | 'escalated' | 'unchanged';
      readonly status: TaskStatus;
      readonly level: StopLevel;
      /** The reason that is kept: the first one, not necessarily yours. */
      readonly reason: CancelReason;
      readonly killAt: number;
    }
  | { readonly result: 'too-late'; readonly status: FinalStatus }
  | { readonly result: 'not-found' };

/** The result of sending a command to a running task. */
export type SendReceipt =
  | { readonly result: 'accepted'; readonly number: number }
  | { readonly result: 'too-late'; readonly status: TaskStatus }
  /** Too many commands are waiting for the worker. */
  | { readonly result: 'full' }
  | { readonly result: 'not-found' };

interface ReadOptions {
  readonly after?: number | undefined;
  readonly limit?: number | undefined;
}

/** Which tasks to list, newest first. */
export interface ListFilter {
  readonly tenant: string;
  readonly status?: TaskStatus | undefined;
  readonly conversation?: string | undefined;
  /** Only background tasks that belong to this conversation: their keys are from `createBackgroundKey`. */
  readonly backgroundOf?: string | undefined;
  readonly limit?: number | undefined;
  /** `next` of the previous page. */
  readonly cursor?: string | undefined;
}

/** One page of a list of tasks. */
export interface ListPage {
  /** Without inputs, which may be large. */
  readonly tasks: readonly TaskSummary[];
  readonly next?: string;
}
