import type { Json } from '@whoa/core';
import type { FinalStatus } from './status.ts';
import type { ConversationRecord, NumberedCommand, StopOrder, TaskHead } from './task.ts';

/** One life of one worker in one domain. Made by the first take or claim that hands something out; never reused. */
export interface SessionRef {
  readonly domain: number;
  /** A random id of 96 bits, made by the worker. */
  readonly session: string;
}

/** The right to write to a task. */
export interface ClaimRef {
  readonly id: string;
  /** Raised whenever a task is taken or taken away. */
  readonly epoch: number;
  readonly session: string;
  /** Made anew for each take: a failover that forgets a take can repeat any counter, but not this. */
  readonly claim: string;
}

interface SessionRequest extends SessionRef {
  /** The worker's name. */
  readonly worker: string;
  readonly leaseMs: number;
  /** A random id of 96 bits for this request; the same when it is repeated. */
  readonly claim: string;
  /** Inputs and histories are returned along as long as they have no more bytes in all; the others are loaded. */
  readonly maxBytes?: number;
}

/** A worker's request for tasks. */
export interface TakeRequest extends SessionRequest {
  /** 1 for a session's first take, one more after each answer that held tasks or was a `repeat`. */
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
      /** This number had been answered before: the same tasks, as far as they are still held. Nothing new was taken. */
      readonly repeat: boolean;
      /** When something that is not ready yet becomes so. */
      readonly nextAt?: number;
      /** Sessions have run out: please sweep. Said to one worker at a time. */
      readonly expired: boolean;
      readonly now: number;
    }
  /** A newer take of this session was answered already. */
  | { readonly answer: 'stale' }
  /** The session is over, or the store has lost it: stop its tasks, begin another. */
  | { readonly answer: 'gone' };

/** A task handed to a session. */
export interface TakenTask {
  readonly claim: ClaimRef;
  /** `cancelling`: settle it, do not run it. Without inputs. */
  readonly task: TaskHead;
  readonly orders: Orders;
  /** Left out when it was too large to come along. */
  readonly load?: TaskLoad;
}

export interface TaskLoad {
  readonly inputs: readonly Json[];
  /** What was said in the conversation before. */
  readonly history: ConversationRecord['history'];
}

/** Whether a worker was given one task. */
export type ClaimAnswer =
  | ({ readonly answer: 'claimed' } & TakenTask)
  /** Another session has it, at least until then; after that a sweep can free it. */
  | { readonly answer: 'held'; readonly until: number }
  /** Not its turn; `until` if only time is missing. */
  | { readonly answer: 'waiting'; readonly until?: number }
  | { readonly answer: 'too-late'; readonly status: FinalStatus }
  | { readonly answer: 'unknown' }
  /** The session is over. */
  | { readonly answer: 'gone' };

/** A worker's heartbeat for one of its sessions. */
export interface Beat extends SessionRef {
  /** Orders that have been carried out, by the number they came with. */
  readonly confirmed?: readonly (Omit<ClaimRef, 'session'> & { readonly orderNumber: number })[];
  /** How many tasks the worker believes it holds. */
  readonly count: number;
}

/** Whether the session lives, and the orders its worker has not confirmed. */
export type BeatAnswer =
  | {
      readonly answer: 'alive';
      /** Orders not confirmed yet, at most `MAX_ORDERS`. */
      readonly orders: readonly TaskOrders[];
      /** There are more: beat again. */
      readonly more: boolean;
      /** The counts differ: read `held`. */
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
  /** There is more to free now. */
  readonly more: boolean;
  /** When the next session runs out, if nobody beats it. */
  readonly nextAt?: number;
  readonly now: number;
}

/** What a worker should know of a task. Everything stands in it, every time, so nothing is ever missed. */
export interface Orders {
  /** The store's time. */
  readonly now: number;
  /** Rises with every order; what a beat confirms. 0: there never was one. */
  readonly orderNumber: number;
  readonly stop?: StopOrder;
  readonly commands: readonly NumberedCommand[];
  /** The journal is being read along; write more often. */
  readonly watched: boolean;
}
