import type { CancelReason, Json, Policy, StopLevel, Usage } from '@whoa/core';
import type { FinalStatus, TaskStatus } from './status.ts';

/** Names a task to somebody who may only see one tenant's. */
export interface TaskRef {
  readonly tenant: string;
  readonly id: string;
}

/** Names a task by its sender's own key; with the conversation it was created in, if it was in one. */
export interface KeyRef {
  readonly tenant: string;
  readonly key: string;
  readonly conversation?: string | undefined;
}

/** Names a conversation. */
export interface ConversationRef {
  readonly tenant: string;
  readonly conversation: string;
}

/** What is wanted. */
export interface NewTask {
  readonly tenant: string;
  /** Which agent, by the name its workers know it by. */
  readonly agent: string;
  readonly input: Json;
  readonly conversation?: string | undefined;
  /** The sender's own name for it: created twice under one key, it exists once. */
  readonly key?: string | undefined;
  /** Who will probably run it, claims it by its id, and hears when its turn comes. Others wait a moment before they take it. */
  readonly worker?: string | undefined;
  /** In a conversation: hold it back this long; a newer message joins it. */
  readonly holdMs?: number | undefined;
  /** A higher one is taken first among the tasks of its tenant; from -100 to 100, 0 by default. */
  readonly priority?: number | undefined;
  /** Not to be taken before this moment, in milliseconds since 1970. */
  readonly notBefore?: number | undefined;
  /**
   * The moment at which it is cancelled if it has not ended, in milliseconds since 1970. A task that still waits then is
   * never begun: it ends as soon as a worker comes to it.
   */
  readonly deadline?: number | undefined;
  /** At most `limit` tasks with this key run at once; the others wait. Not together with a conversation. */
  readonly concurrency?: { readonly key: string; readonly limit: number } | undefined;
}

/** How a cancel is to be carried out, pinned to the store's clock. */
export interface StopOrder {
  readonly level: StopLevel;
  readonly reason: CancelReason;
  readonly abortAt: number;
  readonly killAt: number;
  readonly undo: boolean;
}

/** Something for the worker of a task to do. It is kept until the worker says it is done. */
export type TaskCommand =
  | { readonly type: 'cancel-call'; readonly callId: string; readonly reason?: CancelReason }
  | {
      readonly type: 'approve';
      readonly callId: string;
      /** A text is a no, and what the model is told with it. */
      readonly approved: boolean | string;
      /** It also answers what the question says that `always` covers. */
      readonly remember?: boolean;
    }
  | { readonly type: 'steer'; readonly message: Json };

/** A command as a worker finds it. `task`, which only a store writes, waits in case the message comes too late. */
export type NumberedCommand = { readonly number: number } & (
  | Exclude<TaskCommand, { type: 'steer' }>
  | { readonly type: 'steer'; readonly message: Json; readonly task?: string }
);

/** What is kept of a command that somebody sends: a message from outside may not name a task that it would end. */
export function sendable(command: TaskCommand): TaskCommand {
  return command.type === 'steer' ? { type: 'steer', message: command.message } : command;
}

/** What a finished task leaves. */
export interface TaskOutcome {
  readonly status: FinalStatus;
  readonly answer?: string;
  readonly error?: { readonly message: string; readonly code?: string };
  /** Why it was cancelled; the store's own reason wins over this one. */
  readonly reason?: CancelReason;
  /** It was cancelled, but the work was done or had failed before the stop took hold. */
  readonly complete?: boolean;
  readonly usage?: Usage;
  /** The stop report. */
  readonly stop?: Json;
  /** Whatever else the work returned. */
  readonly result?: Json;
  /** What is added to the conversation's history. It is kept with the conversation, not with the task. */
  readonly said?: readonly Json[];
  /** The conversation's history from now on, instead of what it was; `said` is added to it. */
  readonly history?: readonly Json[];
}

/** Everything a store knows of a task but its journal and its inputs. Plain data. */
export interface TaskHead {
  readonly id: string;
  readonly tenant: string;
  readonly agent: string;
  readonly conversation?: string;
  /** The sender's own name for it. */
  readonly key?: string;
  /** Which of the requests to create it under its key did. */
  readonly nonce?: string;
  /** Tasks of its conversation that it ended, or began to end. */
  readonly superseded?: readonly string[];
  /** The task that was given its message, under `steer`. */
  readonly steered?: string;
  readonly priority: number;
  /** Not taken before this moment. */
  readonly notBefore?: number;
  /** Cancelled at this moment. */
  readonly deadline?: number;
  readonly concurrency?: { readonly key: string; readonly limit: number };
  readonly status: TaskStatus;
  /** Where it is while it lives; exactly one of these. */
  readonly stage?: Stage;
  /** In `later`: until when. In `ready`: since when. */
  readonly stageAt?: number;
  /** In `later`, for more messages to join: what it does to others of its conversation then. */
  readonly policy?: Policy;
  /** Fences workers: raised whenever it is taken, handed back or taken away. */
  readonly epoch: number;
  /** Claims since it last got on that were not handed back; each one more than the first means a worker died. */
  readonly attempts: number;
  /** How often its workers died in all. */
  readonly deaths: number;
  /** Who runs it, or will probably run it. */
  readonly worker?: string;
  readonly createdAt: number;
  readonly startedAt?: number;
  readonly endedAt?: number;
  readonly stop?: StopOrder;
  readonly commands: readonly NumberedCommand[];
  readonly commandsSent: number;
  /** Rises with every order to its worker. */
  readonly orderNumber: number;
  /** The position of the last journal entry. */
  readonly position: number;
  /** How large the journal is: its events as JSON, in UTF-8. */
  readonly journalBytes: number;
  /** The journal is read along until then. */
  readonly watchedUntil?: number;
  readonly outcome?: Omit<TaskOutcome, 'history' | 'said'>;
}

/**
 * Where a task that lives is. `later`: its time has not come. `queue`: others of its conversation or concurrency key come
 * first. `ready`: to be taken. `held`: in a session.
 */
export type Stage = 'later' | 'queue' | 'ready' | 'held';

/** Everything a store knows of a task but its journal. Plain data. */
export interface TaskRecord extends TaskHead {
  /** More than one when messages that followed each other closely were taken as one. */
  readonly inputs: readonly Json[];
}

/** Whether somebody reads the journal of a task along. */
export function isWatched({ watchedUntil = 0 }: Pick<TaskHead, 'watchedUntil'>, now: number): boolean {
  return now < watchedUntil;
}

/** One event of a task, in order. Positions start at 1; where one is missing, a later entry has made it needless. */
export interface JournalEntry {
  readonly position: number;
  readonly epoch: number;
  readonly at: number;
  readonly event: Json;
}

/** Where a conversation stands. At most one of its tasks is current; the others wait. */
export interface ConversationRecord extends ConversationRef {
  readonly current?: string;
  readonly waiting: readonly string[];
  /** The task that closely following messages still join. */
  readonly gathering?: string;
  readonly history: readonly Json[];
  readonly changedAt: number;
}

/** The answer the outside world gets: a view of the record. */
export interface TaskResponse {
  readonly id: string;
  readonly status: TaskStatus;
  readonly success: boolean;
  readonly answer: string;
  readonly msg: string;
  readonly usage: Usage | undefined;
  /** Milliseconds from start to end; 0 if it never started. */
  readonly timeCost: number;
  readonly trajectory: readonly Json[];
}

/** Sums a record, and its journal if you have it, up for the outside world. */
export function toTaskResponse(task: TaskRecord, journal: readonly JournalEntry[] = []): TaskResponse {
  const { id, status, outcome, startedAt, endedAt } = task;
  return {
    id,
    status,
    success: status === 'success',
    answer: outcome?.answer ?? '',
    msg: outcome?.error?.message ?? (status === 'cancelled' ? (outcome?.reason?.message ?? 'cancelled') : ''),
    usage: outcome?.usage,
    timeCost: startedAt === undefined || endedAt === undefined ? 0 : endedAt - startedAt,
    trajectory: journal.map(({ event }) => event),
  };
}
