import type { AppContext, CancelReason, Json, Policy, StopLevel, Usage } from '@whoa/core';
import { settings } from '@whoa/core/internal';
import type { FinalStatus, TaskStatus } from './ledger/rules/status.ts';
import type { Question } from './question.ts';

/** Identifies a task to a caller that may only see one tenant's tasks. */
export interface TaskRef {
  readonly tenant: string;
  readonly id: string;
}

/** Identifies a task by its key, and by its conversation if it was created in one. */
export interface KeyRef {
  readonly tenant: string;
  readonly key: string;
  readonly conversation?: string | undefined;
}

/** Identifies a conversation. */
export interface ConversationRef {
  readonly tenant: string;
  readonly conversation: string;
}

/** A task to create. */
export interface NewTask {
  readonly tenant: string;
  /** The agent, by the name that its workers registered. */
  readonly agent: string;
  readonly input: Json;
  readonly conversation?: string | undefined;
  /** Passed to the tools, hooks and `approve` of its run. Plain data, at most 16 KB as JSON. */
  readonly context?: AppContext | undefined;
  /** The sender's key. Creating a task twice with the same key creates one task. */
  readonly key?: string | undefined;
  /**
   * The preferred worker. It claims the task by id and gets a hint when it is ready. Others wait before they take it.
   */
  readonly preferredWorker?: string | undefined;
  /** In a conversation: delay the task this long, so that newer messages of the same context can join it. */
  readonly debounceMs?: number | undefined;
  /** Among the tasks of a tenant, a higher priority is taken first. From -100 to 100; defaults to 0. */
  readonly priority?: number | undefined;
  /** The earliest time at which it may be taken, in milliseconds since 1970. */
  readonly notBefore?: number | undefined;
  /**
   * The time at which it is cancelled if it has not ended, in milliseconds since 1970. A task that is still waiting
   * then never starts: any worker ends it, whichever agents it has.
   */
  readonly deadline?: number | undefined;
  /** The W3C trace context of what created it, so that the spans of its worker are part of the same trace. */
  readonly traceparent?: string | undefined;
  /** Who starts it, by name. */
  readonly startedBy?: string | undefined;
  /**
   * In a conversation: its sender may not answer for the current task. So it withdraws no question: while one is open, it
   * is queued.
   */
  readonly keepsQuestions?: boolean | undefined;
}

/** How to carry out a cancel, in times of the store's clock. */
export interface StopOrder {
  readonly level: StopLevel;
  readonly reason: CancelReason;
  readonly abortAt: number;
  readonly killAt: number;
  readonly undo: boolean;
}

/** A command for the worker of a task. It is kept until the worker confirms it. */
export type TaskCommand =
  | { readonly type: 'cancel-call'; readonly callId: string; readonly reason?: CancelReason }
  | { readonly type: 'steer'; readonly message: Json };

/** A command as the worker receives it. `task` is set by the store only: it runs if the message arrives too late. */
export type NumberedCommand = { readonly number: number } & (
  | Exclude<TaskCommand, { type: 'steer' }>
  | { readonly type: 'steer'; readonly message: Json; readonly task?: string }
);

/**
 * Strips a command to what callers may send, and rejects what no worker would carry out. Don't let one name a `task`: the
 * command would end that task.
 */
export function sendable({ type, ...command }: TaskCommand): TaskCommand {
  const { callId, reason, message = null } = command as { callId?: string; reason?: CancelReason; message?: Json };
  if (type === 'steer') return { type, message };
  settings.oneOf('cancel-call', 'steer')(type, 'command.type');
  settings.nonEmptyText(callId, 'command.callId');
  return { type, callId: callId!, ...(reason !== undefined && { reason }) };
}

/** The outcome of a finished task. */
export interface TaskOutcome {
  readonly status: FinalStatus;
  readonly answer?: string;
  readonly error?: { readonly message: string; readonly code?: string };
  /** Why it was cancelled. The reason in the store takes precedence over this one. */
  readonly reason?: CancelReason;
  /** It was cancelled, but the work had finished or failed before the stop took effect. */
  readonly isComplete?: boolean;
  /** Model tokens, over all its workers. */
  readonly usage?: Usage;
  /** What it cost, over all its workers, if that has a limit. */
  readonly spending?: TaskSpending;
  /** The stop report. */
  readonly stopReport?: Json;
  /** Anything else the work returned. */
  readonly result?: Json;
  /** Messages to add to the conversation's history. They are kept with the conversation, not with the task. */
  readonly newMessages?: readonly Json[];
  /** Replaces the conversation's history; `said` is added to it. */
  readonly history?: readonly Json[];
}

/** What a task has done so far, over all its workers. */
export interface TaskActivity {
  /** How often its model replied. */
  readonly turns: number;
  /** How many calls those replies asked for. */
  readonly calls: number;
  /** Model tokens, those of agents inside its calls included. Not `complete` while a reply is being written. */
  readonly usage?: Usage;
  readonly spending?: TaskSpending;
  /** Set while it waits, without a worker, for the provider of its model. It is taken again at `stageAt` of the task. */
  readonly providerWait?: ProviderWait;
}

/** What a task has spent, in whole millionths of a US dollar. */
export interface TaskSpending {
  /** Including `estimated`. */
  readonly spent: number;
  /** How much of it no provider reported. */
  readonly estimated: number;
  /** What the requests in progress may cost. */
  readonly reserved: number;
}

/** Why a task waits for the provider of its model. */
export interface ProviderWait {
  /** The last error of the provider. */
  readonly error: string;
  /** When the provider failed first, without a complete reply since. */
  readonly since: number;
  /** How often the task has been put off since. */
  readonly attempts: number;
}

/** Everything a store knows about a task except its journal and its inputs. Plain data. */
export interface TaskSummary {
  readonly id: string;
  readonly tenant: string;
  readonly agent: string;
  readonly conversation?: string;
  /** What was asked, in one line of at most 120 characters, if the input has text. */
  readonly title?: string;
  /** The sender's key. */
  readonly key?: string;
  /** The nonce of the request that created it. */
  readonly nonce?: string;
  /** Tasks of its conversation that it ended, or started to end. */
  readonly superseded?: readonly string[];
  /** The task that received its message, under `steer`. */
  readonly steered?: string;
  readonly priority: number;
  /** The earliest time at which it may be taken. */
  readonly notBefore?: number;
  /** The time at which it is cancelled. */
  readonly deadline?: number;
  /** The W3C trace context of what created it. */
  readonly traceparent?: string;
  /** Who started it, by name. */
  readonly startedBy?: string;
  readonly status: TaskStatus;
  /** Where it is while it is live. */
  readonly stage?: Stage;
  /** In `delayed`: until when. In `ready`: since when. */
  readonly stageAt?: number;
  /** In `delayed`, while other messages may join: the policy to apply to its conversation afterwards. */
  readonly policy?: Policy;
  /** Fences workers: increases whenever the task is taken, handed back or taken away. */
  readonly epoch: number;
  /** Names the claim that holds it; after its end, the last one. */
  readonly claimHash?: string;
  /**
   * Claims since the last progress that were not handed back. Each one after the first means that a worker crashed. From
   * 2 on, a task that waits is a suspect: a worker holds one at a time.
   */
  readonly attempts: number;
  /** How often its workers crashed in total. A worker that comes back and hands the task back did not crash. */
  readonly crashes: number;
  /** The worker that runs it, or is preferred to run it. */
  readonly worker?: string;
  readonly createdAt: number;
  readonly startedAt?: number;
  readonly endedAt?: number;
  readonly stop?: StopOrder;
  readonly commands: readonly NumberedCommand[];
  readonly commandsSent: number;
  /** Increases with every order to its worker. */
  readonly orderNumber: number;
  /** The position of the last journal entry. */
  readonly position: number;
  /** The size of the journal: its events as JSON, in UTF-8. */
  readonly journalBytes: number;
  /** What its agent has done so far. Other work has none. */
  readonly activity?: TaskActivity;
  /** How many questions wait for an answer. Left out if none does. */
  readonly waiting?: number;
  /** It has asked questions. Left out if it never did. */
  readonly hasAsked?: true;
  readonly outcome?: Omit<TaskOutcome, 'history' | 'newMessages'>;
}

/**
 * Where a live task is. `later`: its start time has not come. `queue`: other tasks of its conversation come first.
 * `ready`: it can be taken. `held`: a session holds it. `parked`: it waits for answers, without a worker.
 */
type Stage = 'delayed' | 'queued' | 'ready' | 'held' | 'parked';

/** Everything a store knows about a task except its journal. Plain data. */
export interface TaskRecord extends TaskSummary {
  /** More than one when several messages in quick succession were merged. */
  readonly inputs: readonly Json[];
  readonly context?: AppContext;
  /** All questions that it asked, oldest first. Left out if it asked none. */
  readonly questions?: readonly Question[];
}

/** One event of a task, in order. Positions start at 1. A missing position means that a later entry replaced it. */
export interface JournalEntry {
  readonly position: number;
  readonly epoch: number;
  readonly at: number;
  readonly event: Json;
  /** Names the claim that wrote it. */
  readonly claimHash: string;
  /** How much this claim had said with this event: each UTF-16 unit of words counts 1, and each other event. */
  readonly said: number;
}

/** The state of a conversation. At most one of its tasks is current; the others wait. */
export interface ConversationRecord extends ConversationRef {
  readonly current?: string;
  readonly waiting: readonly string[];
  /** The task that newer messages can still join. */
  readonly debouncing?: string;
  readonly history: readonly Json[];
  readonly changedAt: number;
}

/** The result of a task for callers: a view of the record. */
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

/** Summarizes a record, and its journal if given, for callers. */
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
