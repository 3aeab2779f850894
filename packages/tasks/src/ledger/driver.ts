import type { CancelReason, Policy, StopLevel } from '@whoa/core';
import type {
  ClaimRef,
  ClaimRequest,
  ClaimResult,
  Heartbeat,
  HeartbeatResult,
  Orders,
  ParkReceipt,
  SeenByWorker,
  SweepResult,
  TakeRequest,
  TakeResult,
} from '../delivery/worker-store.ts';
import type { EngineReceipt, PauseTarget, Queue, StoreFigures, WorkersSnapshot } from '../overview.ts';
import type { AnswerReceipt, Question, QuestionClose, QuestionRef } from '../question.ts';
import type {
  CreateReceipt,
  FinishResult,
  ListFilter,
  ListPage,
  ReleaseResult,
  SendReceipt,
  StoreCancelReceipt,
  TaskStore,
} from '../store.ts';
import type { ConversationRef, JournalEntry, NewTask, TaskCommand, TaskOutcome, TaskRecord, TaskRef } from '../task.ts';
import type { TaskStatus } from './rules/status.ts';

/** What a driver does as a store does, with checked arguments. */
type SameMethod = 'name' | 'noteOffered' | 'load' | 'held' | 'show' | 'get' | 'conversation' | 'remove' | 'watch';

/**
 * The implementation of one kind of store. `checked-store.ts` wraps it and checks and completes every request, so a
 * driver can trust its arguments: they are complete and within their bounds, and fields marked as JSON contain valid
 * JSON text.
 *
 * @experimental It may change in any release: require an exact version of this package if you implement it.
 */
export interface StoreDriver extends Pick<TaskStore, SameMethod | 'feed'>, AsyncDisposable {
  /** Creates a task, or returns the one that has the same key. */
  create(request: CreateRequest): Promise<DriverReceipt>;
  /** Gives ready tasks to a worker. */
  take(request: DriverTake): Promise<TakeResult>;
  /** Gives one named task to a worker. */
  claim(id: string, request: Required<ClaimRequest>): Promise<ClaimResult>;
  /** Gives several named tasks to a worker. Returns a result for each, in order. */
  claimMany(ids: readonly string[], request: Required<ClaimRequest>): Promise<readonly ClaimResult[]>;
  /** Renews a worker's session, and returns its orders. */
  heartbeat(heartbeat: Required<Heartbeat>): Promise<HeartbeatResult>;
  /** Frees the tasks of workers whose sessions have expired. */
  sweep(options: { readonly limit: number }): Promise<SweepResult>;
  /** Adds events to a task's journal, if the claim still holds. */
  append(claim: ClaimRef, batch: DriverBatch): Promise<Orders>;
  /** Returns a task, so that another worker can take it. `delayMs`: 0 for one that can be taken immediately. */
  release(claim: ClaimRef, delayMs: number): Promise<ReleaseResult>;
  /** Sets a task aside until a question is answered. */
  park(claim: ClaimRef, seen: SeenByWorker): Promise<ParkReceipt>;
  /** Ends a task with its outcome. */
  finish(claim: ClaimRef, end: FinishRequest): Promise<FinishResult>;
  /** Records a cancel, and orders the worker that holds the task to stop it. */
  cancel(target: TaskRef | ConversationRef, stop: StopRequest): Promise<StoreCancelReceipt>;
  /** Sends a command to the worker that holds a task. */
  send(task: TaskRef, command: TaskCommand, nonce: string): Promise<SendReceipt>;
  /** Answers a task's question. */
  answer(question: QuestionRef & { readonly task: string }, given: DriverAnswer): Promise<AnswerReceipt>;
  /** Lists tasks, newest first. */
  list(filter: ListRequest): Promise<ListPage>;
  /** Reads a task's journal after a position. */
  read(task: TaskRef, options: ReadRequest): Promise<readonly JournalEntry[]>;
  /** Counts a tenant's tasks by status, each up to a limit. */
  counts(request: { readonly tenant: string; readonly limit: number }): Promise<Readonly<Record<TaskStatus, number>>>;
  /** Lists names of tenants after a given one, in byte order. */
  tenants(request: { readonly after: string; readonly limit: number }): Promise<readonly string[]>;
  /** Lists sessions that hold tasks, and waiting workers: at most `limit` of each. */
  workers(request: { readonly limit: number }): Promise<WorkersSnapshot>;
  /** Lists queues after a given one, and what is paused. */
  queues(request: QueuesRequest): Promise<QueuesSnapshot>;
  /** Keeps what a client found out. Without `found`, returns it; if it is too old, tells one client in that time so. */
  share(request: ShareRequest): Promise<Shared>;
  /** Lists a tenant's conversations after a given one, in byte order. */
  conversations(request: {
    readonly tenant: string;
    readonly after: string;
    readonly limit: number;
  }): Promise<readonly string[]>;
  /** Lists a tenant's open questions after a given one, oldest first. */
  questions(request: QuestionsRequest): Promise<readonly Question[]>;
  /** Pauses or resumes delivery for an agent or a tenant. Call it again while it returns true. */
  pause(target: PauseTarget, isPaused: boolean): Promise<boolean>;
  /** Lets an engine deliver an agent, or none, and moves some of what waits. Call it again while `hasMore`. */
  setEngine(request: EngineRequest): Promise<DriverEngineReceipt>;
  /** Counts what waits for people, up to a limit of open questions. */
  figures(request: { readonly limit: number }): Promise<StoreFigures>;
}

/** A take; `offers`: only of a process that has engines. */
export type DriverTake = Required<Omit<TakeRequest, 'offers'>> & Pick<TakeRequest, 'offers'>;

export interface EngineRequest {
  readonly agent: string;
  readonly engine: string | undefined;
  readonly lostBefore: number | undefined;
}
export type DriverEngineReceipt = EngineReceipt & { readonly hasMore?: boolean };

/** `found`: JSON text. */
export type ShareRequest = { readonly maxAgeMs: number; readonly found?: string };
export type Shared = { readonly isDue: boolean; readonly found: string | null };

export interface QueuesRequest {
  readonly after?: Pick<Queue, 'agent' | 'tenant'>;
  readonly limit: number;
}

/** Queues as a driver finds them; at most `limit` of each list. */
export interface QueuesSnapshot {
  readonly queues: readonly Queue[];
  /** Of a page that continues another, nothing. The same for `paused`. */
  readonly running: Readonly<Record<string, number>>;
  /** At least for the agents of these queues. */
  readonly waiting: Readonly<Record<string, number>>;
  readonly paused: readonly PauseTarget[];
  readonly engines: Readonly<Record<string, string>>;
  readonly now: number;
}

/** How long records are kept, as held by the store. */
export interface Retention {
  retentionMs: number;
  conversationRetentionMs: number;
}

/** What the store holds for all its clients. */
export type StoredSettings = Readonly<Partial<Record<StoredSetting, number>>>;
type StoredSetting = 'retentionMs' | 'conversationRetentionMs';

/** The limits of a store. The retention changes when a client learns what the store holds. */
export interface StoreRules extends Retention {
  readonly maxAttempts: number;
  /** What the client asks the store to hold. */
  readonly given: StoredSettings;
  readonly maxJournalBytes: number;
  readonly maxReady: number;
  readonly maxRunningPerTenant?: number;
  readonly maxRunningPerAgent?: number;
}

/** Inputs are compared for the driver. */
export type DriverReceipt = Exclude<CreateReceipt, { result: 'duplicate' }> | { result: 'duplicate'; task: TaskRecord };

/** A task to create, checked and complete. */
export interface CreateRequest extends Omit<NewTask, 'input' | 'priority' | 'debounceMs' | 'context'> {
  readonly id: string;
  /** JSON text. */
  readonly input: string;
  /** JSON text, the same for equal contexts; empty if there is none. */
  readonly context: string;
  /** What the head of the task shows of its input. */
  readonly title?: string | undefined;
  readonly priority: number;
  readonly debounceMs: number;
  readonly policy: Policy;
  readonly nonce: string;
}

export interface DriverBatch {
  readonly after: number;
  /** JSON texts. */
  readonly events: readonly string[];
  /** One number for each event. */
  readonly said: readonly number[];
  readonly replaces: readonly number[];
  readonly done: readonly number[];
  readonly declined: readonly number[];
  readonly resetsAttempts: boolean;
  /** Text for `parseActivity`. A batch that is already written does not change it. */
  readonly activity?: string | undefined;
  /** A batch that is already written does not change them. Each question occurs once. */
  readonly asks: readonly DriverQuestion[];
  readonly closes: readonly QuestionClose[];
}

/** A question to ask. Its id is of this task. */
interface DriverQuestion {
  readonly id: string;
  /** JSON text: its `callId`, `kind` and `shown`. */
  readonly asked: string;
  readonly expiresMs?: number | undefined;
}

/** An answer to a question. */
export interface DriverAnswer {
  /** JSON text: its `value`, and `by` if that is known. */
  readonly text: string;
  readonly nonce: string;
}

export interface QuestionsRequest {
  readonly tenant: string;
  readonly limit: number;
  /** Only questions behind this one. */
  readonly after?: Pick<Question, 'askedAt' | 'id'>;
}

/** A stop, as distances from the store's current time. */
export interface StopRequest {
  readonly level: StopLevel;
  readonly abortMs: number;
  readonly killMs: number;
  readonly undo: boolean;
  /** The store adds `at` if it is missing. */
  readonly reason: Omit<CancelReason, 'at'> & { readonly at?: number };
}

export interface FinishRequest {
  readonly outcome: Omit<TaskOutcome, 'history' | 'newMessages'>;
  /** JSON texts: messages to add to the conversation's history. */
  readonly newMessages: readonly string[];
  /** The history starts again with `said`. */
  readonly replacesHistory: boolean;
}

export interface ListRequest extends Omit<ListFilter, 'cursor' | 'limit'> {
  readonly limit: number;
  /** Only tasks older than this one. */
  readonly after?: { readonly createdAt: number; readonly id: string };
}

export interface ReadRequest {
  readonly after: number;
  readonly limit: number;
}
