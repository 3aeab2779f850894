import type { Json } from '@whoa/core';
import type { FeedEvent, FeedKind } from '../../feed/feed.ts';
import type { PauseTarget, Queue, StoreFigures, WaiterSnapshot } from '../../overview.ts';
import type { Question } from '../../question.ts';
import type { Hint } from '../../store.ts';
import type { ConversationRecord, ConversationRef, JournalEntry, TaskRef, TaskSummary } from '../../task.ts';
import type { ListRequest, QuestionsRequest, StoreRules } from '../driver.ts';
import type { QuestionCounts, QuestionState } from '../rules/questions.ts';
import type { TaskStatus } from '../rules/status.ts';

/** A task as a local store keeps it: its head, and fields that only the store and its worker may know. */
export interface StoredTask extends TaskSummary {
  /** Owner of its inputs: its id, or a separate name once they were passed on. */
  readonly inputOwner: string;
  /** JSON text, the same for equal contexts. */
  readonly context?: string;
  /** The session that may write to it; after its end, the last one that could. */
  readonly session?: string;
  readonly claim?: string;
  /** The claim that was handed back last. */
  readonly released?: string;
  /** Crashes since the last progress that are this task's own: it was the only suspect of its session. */
  readonly charges?: number;
  /** The claim that was taken away last. Its worker may still release it, which takes the crash back. */
  readonly lostClaim?: string;
  /** It became ready while an engine delivers its agent. */
  readonly isOffered?: boolean;
  /** When it was last offered to its engine again. Becoming ready clears it. */
  readonly offeredAt?: number;
  /** That crash was charged. */
  readonly isCharged?: boolean;
  /** See `NewTask`. */
  readonly keepsQuestions?: boolean;
  /** Its worker has not confirmed the latest order. */
  readonly hasPendingOrders?: boolean;
  /** For `parseActivity`. */
  readonly storedActivity?: string;
  /** Left out if it never asked. */
  readonly questionCounts?: QuestionCounts;
}

/** A question as a local store keeps it. */
export interface StoredQuestion extends Question {
  readonly task: string;
  readonly tenant: string;
  readonly state: QuestionState;
  /** The nonce of its answer. */
  readonly nonce?: string;
}

/** The state of a conversation without its history, which may be long and which most operations do not need. */
export interface Conversation extends Omit<ConversationRecord, 'history'> {
  readonly historyBytes: number;
}

/** A worker's session. */
export interface Session {
  readonly id: string;
  readonly worker: string;
  readonly leaseMs: number;
  /** When it expires. Left out while it holds nothing. */
  readonly expiresAt?: number;
  /** Never becomes false again. */
  readonly isOver: boolean;
  /** The last suspect that it took. It holds no other until this one has made progress or left. */
  readonly suspect?: string;
  readonly takeNumber: number;
  /** The tasks of the last take that returned any. */
  readonly lastTaken: readonly string[];
  /** The claim of that take. */
  readonly lastTakeClaim?: string;
  /** When it last held a task. */
  readonly lastHeldAt: number;
}

/** What a store remembers about time. */
export interface StoreState {
  /** The last contact of a worker, within an eighth of a lease. */
  readonly lastContactAt: number;
  /** Nothing is freed before this time. */
  readonly graceUntil: number;
  /** The grace time was given since the last beat. */
  readonly isGraceGranted: boolean;
  readonly sweepRequestedAt: number;
  /** When a worker was last told of lost offers. */
  readonly offersToldAt?: number;
  /** JSON text that one client found out for all, and when one last began to. */
  readonly shared?: string;
  readonly sharedAt?: number;
}

export const newStoreState = (lastContactAt: number): StoreState => ({
  lastContactAt,
  graceUntil: 0,
  isGraceGranted: false,
  sweepRequestedAt: 0,
});

/** Tasks of one tenant that wait for the same kind of worker. */
export interface ReadyQueue {
  /** Its name: an agent, or one of the reserved names. */
  readonly agent: string;
  readonly tenant: string;
}

/** How far a consumer of the feed has come. */
export interface Cursor {
  readonly consumer: string;
  readonly kinds: readonly FeedKind[];
  /** The number of the last event that it has done. */
  readonly at: number;
  readonly version: number;
  /** Who reads, and until when no one else does. */
  readonly reader?: string;
  readonly until: number;
  /** When someone last read for it. */
  readonly seenAt: number;
  readonly missedSince?: number;
}

/** What changed, for consumers. Numbers rise with each commit, and are never used again. */
export interface FeedTables {
  addEvent(event: FeedEvent): void;
  /** The number of the newest event. */
  lastEvent(): number;
  events(after: number, limit: number): readonly { readonly number: number; readonly event: FeedEvent }[];
  removeEvents(upTo: number): void;
  forgetEvents(of: { readonly tenant: string; readonly conversation?: string | undefined }): void;
  cursors(): readonly Cursor[];
  saveCursor(cursor: Cursor): void;
  removeCursor(consumer: string): void;
  addTotal(name: string, value: number): void;
  totals(): Readonly<Record<string, number>>;
}

/** The tasks of one agent or of one tenant. */
export type DeliveryOf = { readonly agent: string } | { readonly tenant: string };

/** Tasks by stage, and the workers that wait for them. */
export interface StageTables {
  /** Puts a ready queue with ready tasks behind all others, unless it is already open. */
  openReadyQueue(readyQueue: ReadyQueue): void;
  closeReadyQueue(readyQueue: ReadyQueue): void;
  /** Returns whether a ready queue of suspects or of tasks to undo may be open, which is rare. */
  hasReservedQueues(): boolean;
  /** Returns the open ready queue among these names that waited longest. */
  firstReadyQueue(names: readonly string[]): ReadyQueue | undefined;
  /** Moves a ready queue behind all others. */
  rotateReadyQueue(readyQueue: ReadyQueue): void;
  /** Returns the first task of a ready queue: highest priority, then longest ready. */
  firstReady(readyQueue: ReadyQueue): StoredTask | undefined;
  countReady(readyQueue: ReadyQueue, limit: number): number;
  /** Returns tasks of any tenant that are ready in one of these ready queues. */
  readyIn(names: readonly string[], limit: number): readonly StoredTask[];
  /** Returns offered tasks that became ready, or were last offered again, until these times. */
  lostOffers(until: { readonly readyAt: number; readonly offeredAt: number }, limit: number): readonly StoredTask[];
  /** Returns tasks of an agent or a tenant that were offered again until a given time. */
  offeredAgain(of: DeliveryOf, until: number, limit: number): readonly StoredTask[];
  /** Returns the names of a tenant's ready queues with ready tasks, without `SETTLE`. */
  readyQueueNames(tenant: string): readonly string[];
  countHeld(of: DeliveryOf, limit: number): number;
  /** Returns tasks in `delayed` whose time has come. */
  due(now: number, limit: number): readonly StoredTask[];
  nextDelayedAt(): number | undefined;
  /** Returns the waiting task whose deadline passed first. */
  firstOverdue(now: number): StoredTask | undefined;
  /** Returns the task about which something expired first: see `toExpiry`. */
  firstExpired(now: number): StoredTask | undefined;
  heldBy(session: string, limit: number): readonly StoredTask[];
  countHeldBy(session: string): number;
  withPendingOrders(session: string, limit: number): readonly StoredTask[];

  /** Records that a worker waits for tasks of these agents. Writes nothing if that was recorded recently. */
  park(worker: string, agents: readonly string[], at: number): void;
  unpark(worker: string): void;
  /** Removes and returns one worker that waits for an agent, or for any agent if a task only has to be settled. */
  takeWaiter(agent: string, since: number): string | undefined;
}

/** Sessions, and what the store remembers about time. */
export interface SessionTables {
  session(id: string): Session | undefined;
  saveSession(session: Session): void;
  /** Returns the session that expires first. */
  firstSession(): Session | undefined;
  /** Returns sessions that expire after a given time. They exist only if the clock was set back. */
  sessionsAfter(at: number): readonly Session[];
  storeState(): StoreState | undefined;
  saveStoreState(state: StoreState): void;
}

/**
 * The tables that operations work on: one transaction in a local store. Nothing here waits, so no other operation can
 * run in between. Where a task is found (ready in its ready queue, later, queued, held by a session, with pending orders) follows from its
 * fields.
 */
export interface Tables extends StageTables, SessionTables, FeedTables {
  task(id: string): StoredTask | undefined;
  saveTask(task: StoredTask): void;
  addInput(owner: string, input: Json): void;
  inputs(owner: string): readonly Json[];
  inputsCount(owner: string): number;
  /** Moves inputs behind those of another owner. */
  moveInputs(from: string, to: string): void;

  conversation(ref: ConversationRef): Conversation | undefined;
  saveConversation(conversation: Conversation): void;
  history(ref: ConversationRef): readonly Json[];
  /** Adds to a history, at little cost however long it is. */
  addHistory(ref: ConversationRef, messages: readonly string[]): void;
  clearHistory(ref: ConversationRef): void;

  /** Removes what an older task with the same id may have left. */
  clear(id: string): void;
  /** Removes an ended task. */
  removeTask(task: StoredTask): void;
  removeConversation(ref: ConversationRef): void;
  addEntries(id: string, entries: readonly JournalEntry[]): void;
  /** Returns the total size of the given entries that exist. */
  measureEntries(id: string, positions: readonly number[]): number;
  removeEntries(id: string, positions: readonly number[]): void;
  /** Returns the number of a command by its nonce. */
  findCommandNumber(id: string, nonce: string): number | undefined;
  /** Stores a nonce. Only the nonces of the latest `maxNonces` numbers must be kept. */
  saveCommandNonce(id: string, command: { readonly nonce: string; readonly number: number }): void;

  question(task: string, id: string): StoredQuestion | undefined;
  saveQuestion(question: StoredQuestion): void;
  /** Returns the questions of a task that are not closed, oldest first. */
  liveQuestions(task: string): readonly StoredQuestion[];
  allQuestions(task: string): readonly StoredQuestion[];

  isPaused(target: PauseTarget): boolean;
  setPaused(target: PauseTarget, isPaused: boolean): void;
  /** Returns the engine that delivers an agent. */
  engine(agent: string): string | undefined;
  setEngine(agent: string, engine: string | undefined): void;
  /** Returns when the first of the ended tasks ended. */
  firstEnded(): number | undefined;

  /** Notifies watchers once the transaction has been committed. */
  notify(hint: Hint): void;
  /** Lists the inboxes of processes in which clients read a task. */
  readers(task: TaskRef): readonly string[];
}

/** Read queries of a local store. */
export interface Queries {
  list(filter: ListRequest): readonly StoredTask[];
  /** Counts tasks, except those that ended at `endedAt` or before. */
  countStatus(
    of: { readonly tenant: string; readonly status: TaskStatus; readonly endedAt: number },
    limit: number,
  ): number;
  /** Lists names of tenants that have tasks, after a given one, in byte order. */
  tenants(after: string, limit: number): readonly string[];
  /** Lists sessions that can expire. */
  sessions(limit: number): readonly Session[];
  /** Lists workers that have waited for tasks since a given time. */
  waiters(since: number, limit: number): readonly WaiterSnapshot[];
  /** Lists queues after a given one. */
  queues(after: ReadyQueue | undefined, limit: number): readonly Queue[];
  paused(limit: number): readonly PauseTarget[];
  engines(): Readonly<Record<string, string>>;
  /** Counts the running tasks of each agent. */
  runningByAgent(): Readonly<Record<string, number>>;
  conversations(request: {
    readonly tenant: string;
    readonly after: string;
    readonly limit: number;
  }): readonly string[];
  /** Lists open questions of a tenant that can be answered, oldest first. */
  openQuestions(request: QuestionsRequest & { readonly now: number }): readonly StoredQuestion[];
  /** Counts open questions of all tenants up to a limit, and their tasks. */
  questionFigures(limit: number): Omit<StoreFigures, 'now'>;
  entries(id: string, range: { readonly after: number; readonly limit: number }): readonly JournalEntry[];
  /** Removes old tasks, conversations and sessions, at most `limit` of each. Returns whether there may be more. */
  purge(
    before: { readonly endedAt: number; readonly changedAt: number; readonly lastHeldAt: number },
    limit: number,
  ): boolean;
}

/** The context of an operation: its tables, time and limits. */
export interface OperationContext {
  readonly tables: Tables;
  readonly now: number;
  readonly rules: StoreRules;
}
