import type { ChangeSource, Hint, OfferedTask } from '../bus/hint.ts';
import type { FinalStatus } from '../ledger/rules/status.ts';
import type { NewQuestion, Question, QuestionClose } from '../question.ts';
import type {
  ConversationRecord,
  JournalEntry,
  NumberedCommand,
  StopOrder,
  TaskActivity,
  TaskOutcome,
  TaskRecord,
  TaskSummary,
} from '../task.ts';

/**
 * What workers ask of a store. A worker's write counts if and only if the task's epoch, session and claim match the
 * worker's and the task has not ended. Time never decides this. Leases only decide when a task is taken away.
 */
export interface WorkerStore extends ChangeSource {
  /** The maximum size of a journal. */
  readonly maxJournalBytes: number;

  /**
   * Takes up to `limit` ready tasks for a session, fairly across tenants. A session makes one take at a time. Repeating
   * the same `number` returns the same tasks, so a lost response loses no task. A take that returns fewer tasks than
   * `limit` notes that the worker waits: it gets a `work` hint when a task becomes ready for one of its agents.
   */
  take(request: TakeRequest): Promise<TakeResult>;
  /** Notes that an engine was offered these tasks. Until they become ready again, they are offered anew after a long time only. */
  noteOffered(ids: readonly string[]): Promise<void>;
  /** Claims one task by its id for a session. Repeating the same `claim` returns the same result. */
  claim(id: string, request: ClaimRequest): Promise<ClaimResult>;
  /**
   * Claims several tasks by their ids in one request. Returns what `claim` would, for each of them in order; `maxBytes` is
   * for all together. Repeat it like a claim.
   */
  claimMany(ids: readonly string[], request: ClaimRequest): Promise<readonly ClaimResult[]>;
  /** Loads what a task's work needs in addition to its record: its inputs and the earlier messages. Throws `LeaseLostError`. */
  load(claim: ClaimRef): Promise<TaskLoad>;
  /** Keeps a session alive, confirms orders, and returns the orders that are not confirmed yet. */
  heartbeat(heartbeat: Heartbeat): Promise<HeartbeatResult>;
  /** Returns the tasks that a session holds according to the store. */
  held(session: SessionRef): Promise<readonly HeldTask[]>;
  /**
   * Frees at most `limit` tasks of sessions whose lease expired, and removes at most `limit` ended tasks past their
   * retention. Call it again while `more` is true.
   */
  sweep(options?: { readonly limit?: number }): Promise<SweepResult>;

  /**
   * Appends to the journal and marks commands as done. A batch that arrives twice counts once. Throws `LeaseLostError`,
   * and `JournalFullError` or `QuestionRefusedError` when the batch is not allowed; then nothing was written.
   */
  append(claim: ClaimRef, batch: Batch): Promise<Orders>;
  /** Sends readers what is said before the journal has it. Returns immediately; it may get lost. */
  show(words: WordSource): void;
  /**
   * Hands a claim back unfinished. It costs no attempt; a task in `cancelling` stays there. The claim that was taken away
   * last can still be handed back, which takes its crash back; repeat it until it is answered. `delayMs`: how long no
   * worker takes it, unless it is cancelled. Throws `LeaseLostError`.
   */
  release(claim: ClaimRef, options?: { readonly delayMs?: number }): Promise<ReleaseResult>;
  /**
   * Puts a task aside until a question is answered or closed, a command comes, or it is cancelled. It then takes no slot and
   * costs no attempt. Nothing of it may run. Repeat it until it is answered. Throws `LeaseLostError`.
   */
  park(claim: ClaimRef, seen: SeenByWorker): Promise<ParkReceipt>;
  /** Ends a task, stores the conversation's history, and wakes its successor. Throws `LeaseLostError`. */
  finish(claim: ClaimRef, outcome: TaskOutcome): Promise<FinishResult>;
}

/** One worker's session. The first take or claim that returns a task creates it. It is never reused. */
export interface SessionRef {
  /** A random 96-bit id, created by the worker. */
  readonly session: string;
}

/** The right to write to a task. */
export interface ClaimRef {
  readonly id: string;
  /** Increases whenever a task is taken or taken away. */
  readonly epoch: number;
  readonly session: string;
  /** New for each take. A failover that loses a take can repeat any counter, but not this id. */
  readonly claim: string;
}

interface SessionRequest extends SessionRef {
  /** The worker's name. */
  readonly worker: string;
  readonly leaseMs: number;
  /** A random 96-bit id for this request; the same when it is repeated. */
  readonly claim: string;
  /** Inputs and histories are included up to this total size. The rest must be loaded. */
  readonly maxBytes?: number;
}

/** A worker's request for tasks. */
export interface TakeRequest extends SessionRequest {
  /** 1 for a session's first take. Increase it after each response that contained tasks or was a `repeat`. */
  readonly takeNumber: number;
  readonly agents: readonly string[];
  readonly limit: number;
  /** What the engines of this process handed out, at most 100. Left out if it has none. */
  readonly offers?: readonly Offer[] | undefined;
}

/** What an engine hands out: one task, or without `id` the first waiting task of an agent and tenant. */
export interface Offer {
  readonly agent: string;
  readonly tenant: string;
  readonly id?: string | undefined;
}

/**
 * What became of an offer. `taken`: a task was taken. `more`: the same or not, and more wait for this agent and tenant.
 * `refused`: there is nothing to take now; what waits is offered again. `later`: there was no room: repeat the offer.
 */
export type OfferResult = 'taken' | 'more' | 'refused' | 'later';

export type ClaimRequest = SessionRequest;

/** The tasks a worker was given, or why it got none. */
export type TakeResult =
  | {
      readonly result: 'taken';
      readonly tasks: readonly TakenTask[];
      /** This number was used before: the same tasks, if they are still held. Nothing new was taken. */
      readonly isRepeat: boolean;
      /** When the next task becomes ready. */
      readonly nextReadyAt?: number;
      /** Some sessions expired, or ended tasks are past their retention: call `sweep`. Only one worker at a time is asked. */
      readonly shouldSweep: boolean;
      /** One for each offer. */
      readonly offers?: readonly OfferResult[];
      /** Tasks that wait although they were offered: offer them again, then note it. Only one worker at a time is told. */
      readonly lostOffers?: readonly OfferedTask[];
      readonly now: number;
    }
  /** A newer take of this session was already processed. */
  | { readonly result: 'stale' }
  /** The session is over, or the store lost it. Stop its tasks and start a new session. */
  | { readonly result: 'session-ended' };

/** A task handed to a session. */
export interface TakenTask {
  readonly claim: ClaimRef;
  /** Without inputs. If it is `cancelling`, settle it; don't run it. */
  readonly task: TaskSummary;
  readonly orders: Orders;
  /** Left out when it was too large to include. */
  readonly load?: TaskLoad;
}

export interface TaskLoad extends Pick<TaskRecord, 'inputs' | 'context'> {
  /** The earlier messages of the conversation. */
  readonly history: ConversationRecord['history'];
}

/** The result of claiming one task. */
export type ClaimResult =
  | ({ readonly result: 'claimed' } & TakenTask)
  /** Another session holds it, at least until then. After that, a sweep can free it. */
  | { readonly result: 'held'; readonly until: number }
  /** Other tasks come first, or its start time has not come, or the session holds another suspect: see `until`. */
  | { readonly result: 'waiting'; readonly until?: number }
  | { readonly result: 'too-late'; readonly status: FinalStatus }
  | { readonly result: 'not-found' }
  /** The session is over. */
  | { readonly result: 'session-ended' };

/** A worker's heartbeat for one of its sessions. */
export interface Heartbeat extends SessionRef {
  /** Orders that have been carried out, by their order number. */
  readonly confirmed?: readonly (Omit<ClaimRef, 'session'> & { readonly orderNumber: number })[];
  /** How many tasks the worker holds, by its own count. */
  readonly count: number;
}

/** Whether the session is alive, and the orders that its worker has not confirmed. */
export type HeartbeatResult =
  | {
      readonly result: 'alive';
      /** Orders not confirmed yet, at most `LIMITS.maxOrders`. */
      readonly orders: readonly TaskOrders[];
      /** There are more orders: beat again. */
      readonly hasMore: boolean;
      /** The counts differ: call `held`. */
      readonly shouldReconcile: boolean;
      readonly shouldSweep: boolean;
      readonly now: number;
    }
  | { readonly result: 'session-ended' };

/** Orders of one claim. */
export interface TaskOrders extends Orders {
  readonly id: string;
  readonly epoch: number;
  readonly claim: string;
}

export type HeldTask = Omit<ClaimRef, 'session'>;

export interface SweepResult {
  /** How many tasks were reclaimed or failed. */
  readonly reclaimed: number;
  /** There are more tasks to free or to remove now. */
  readonly hasMore: boolean;
  /** When the next session expires unless its worker beats. */
  readonly nextExpiryAt?: number;
  readonly now: number;
}

/** The orders for the worker of a task. They are always complete, so a missed message loses nothing. */
export interface Orders {
  /** The store's time. */
  readonly now: number;
  /** Increases with every order; a beat confirms it. 0 means that there was no order yet. */
  readonly orderNumber: number;
  readonly stop?: StopOrder;
  readonly commands: readonly NumberedCommand[];
  /** The inboxes of processes in which clients read the task; write more often. */
  readonly readers: readonly string[];
  /**
   * Questions that are open or answered, and those that the store closed until a batch says that this is journaled. Left out
   * if there are none.
   */
  readonly questions?: readonly Question[];
}

export interface Batch {
  /** The last position of the journal, as the writer knows it. */
  readonly after: number;
  readonly events: readonly JournalEntry['event'][];
  /** `said` of each entry. Defaults to its position. */
  readonly said?: readonly number[] | undefined;
  /** Positions of earlier entries that these events replace. They are removed in the same step. */
  readonly replaces?: readonly number[];
  /** Numbers of the commands that have been carried out. */
  readonly done?: readonly number[];
  /** Numbers of messages that the run cannot read: they are left to the tasks that wait with them. */
  readonly declined?: readonly number[];
  /** The work made progress: earlier worker crashes no longer count against the task. */
  readonly resetsAttempts?: boolean;
  /** What the task has done so far. The last one is kept. Its `questions` count while this claim holds the task. */
  readonly activity?: TaskActivity;
  /** Questions that these events ask. At most 32 may be open. */
  readonly asks?: readonly NewQuestion[];
  /** Questions that these events close. */
  readonly closes?: readonly QuestionClose[];
}

/** What a worker has read and acted on when it parks a task. */
export interface SeenByWorker {
  /** The last position of the journal. */
  readonly position: number;
  readonly orderNumber: number;
}

/** What a task says, for its readers. */
export interface WordSource {
  readers(): readonly string[];
  /** Called when a message leaves: returns what is new since the last one. */
  next(): Hint | undefined;
}

/** The result of parking a task. */
export type ParkReceipt =
  /** `unchanged`: this claim was parked or handed back before. */
  | { readonly result: 'parked' | 'unchanged' }
  /** It has something to do: an answer, an order, a command. The worker still holds it. */
  | { readonly result: 'busy'; readonly orders: Orders };

export interface ReleaseResult {
  /** `unchanged`: this claim was handed back or taken away before. */
  readonly result: 'released' | 'unchanged';
}

export interface FinishResult {
  /** `unchanged`: this claim ended the task before; nothing changed. */
  readonly result: 'finished' | 'unchanged';
  readonly status: FinalStatus;
  /** The task that runs next. */
  readonly successor?: string;
}
