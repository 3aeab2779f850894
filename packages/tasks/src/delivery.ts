import type { FinalStatus } from './status.ts';
import type { ConversationRecord, NumberedCommand, StopOrder, TaskHead, TaskRecord } from './task.ts';

/** One worker's session in one domain. The first take or claim that returns a task creates it. It is never reused. */
export interface SessionRef {
  readonly domain: number;
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
  readonly number: number;
  readonly agents: readonly string[];
  readonly limit: number;
}

export type ClaimRequest = Omit<SessionRequest, 'domain'>;

/** The tasks a worker was given, or why it got none. */
export type TakeAnswer =
  | {
      readonly answer: 'taken';
      readonly tasks: readonly TakenTask[];
      /** This number was used before: the same tasks, if they are still held. Nothing new was taken. */
      readonly repeat: boolean;
      /** When the next task becomes ready. */
      readonly nextAt?: number;
      /** Some sessions expired, or ended tasks are past their retention: call `sweep`. Only one worker at a time is asked. */
      readonly expired: boolean;
      readonly now: number;
    }
  /** A newer take of this session was already processed. */
  | { readonly answer: 'stale' }
  /** The session is over, or the store lost it. Stop its tasks and start a new session. */
  | { readonly answer: 'gone' };

/** A task handed to a session. */
export interface TakenTask {
  readonly claim: ClaimRef;
  /** Without inputs. If it is `cancelling`, settle it; don't run it. */
  readonly task: TaskHead;
  readonly orders: Orders;
  /** Left out when it was too large to include. */
  readonly load?: TaskLoad;
}

export interface TaskLoad extends Pick<TaskRecord, 'inputs' | 'context'> {
  /** The earlier messages of the conversation. */
  readonly history: ConversationRecord['history'];
}

/** The result of claiming one task. */
export type ClaimAnswer =
  | ({ readonly answer: 'claimed' } & TakenTask)
  /** Another session holds it, at least until then. After that, a sweep can free it. */
  | { readonly answer: 'held'; readonly until: number }
  /** Other tasks come first, or its start time has not come, or the session holds another suspect: see `until`. */
  | { readonly answer: 'waiting'; readonly until?: number }
  | { readonly answer: 'too-late'; readonly status: FinalStatus }
  | { readonly answer: 'unknown' }
  /** The session is over. */
  | { readonly answer: 'gone' };

/** A worker's heartbeat for one of its sessions. */
export interface Beat extends SessionRef {
  /** Orders that have been carried out, by their order number. */
  readonly confirmed?: readonly (Omit<ClaimRef, 'session'> & { readonly orderNumber: number })[];
  /** How many tasks the worker holds, by its own count. */
  readonly count: number;
}

/** Whether the session is alive, and the orders that its worker has not confirmed. */
export type BeatAnswer =
  | {
      readonly answer: 'alive';
      /** Orders not confirmed yet, at most `MAX_ORDERS`. */
      readonly orders: readonly TaskOrders[];
      /** There are more orders: beat again. */
      readonly more: boolean;
      /** The counts differ: call `held`. */
      readonly recount: boolean;
      readonly expired: boolean;
      readonly now: number;
    }
  | { readonly answer: 'gone' };

/** Orders of one claim. */
export interface TaskOrders extends Orders {
  readonly id: string;
  readonly epoch: number;
  readonly claim: string;
}

export type HeldTask = Omit<ClaimRef, 'session'>;

export interface SweepAnswer {
  /** How many tasks were freed or failed. */
  readonly freed: number;
  /** There are more tasks to free or to remove now. */
  readonly more: boolean;
  /** When the next session expires unless its worker beats. */
  readonly nextAt?: number;
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
  /** A client is reading the journal; write more often. */
  readonly watched: boolean;
}
