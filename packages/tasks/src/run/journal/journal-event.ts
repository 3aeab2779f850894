import type { Json, Message, RunEvent } from '@whoa/core';
import type { ApprovalQuestion } from '@whoa/core/approval';
import type { CallState } from '@whoa/core/embed';
import type { ProviderWait } from '../../task.ts';

/** An error as it is stored. */
interface StoredError {
  readonly message: string;
  readonly code?: string;
}

/** A value as it is stored: plain data, with errors reduced to message and code. */
type Stored<Value> = [Value] extends [Json | undefined]
  ? Value
  : Value extends Error
    ? StoredError
    : Value extends (...args: never[]) => unknown
      ? never
      : Value extends object
        ? { readonly [Field in keyof Value]: Stored<Value[Field]> }
        : Value;

/** Events that are not stored: the end of a run is in the outcome of its task. */
type NotStored = 'run-end' | 'events-skipped';
type RunStart = Extract<RunEvent, { type: 'run-start' }>;

/**
 * The provider of the model is overloaded or cannot be reached, so the task waits. A worker repeats the turn at `until`, or a
 * little later.
 */
export interface PostponedTurn extends ProviderWait {
  readonly type: 'turn-postponed';
  readonly until: number;
}

/**
 * An event in the journal of a task that runs an agent: an event of its run, or one that the journal itself adds. Text
 * is written in drafts while a client is reading; the end of the turn contains all of it. Work that is not an agent
 * writes its own events.
 */
export type JournalEvent =
  | Stored<Exclude<RunEvent, RunStart | { type: NotStored }>>
  /** `version`: of the agent that runs the task from now on. */
  | (Stored<RunStart> & { readonly version?: string })
  /**
   * A call is about to start. If the journal has no more about it, it may have had an effect. `shown`: the digest of what was
   * shown to the user who approved it.
   */
  | {
      readonly type: 'call-intent';
      readonly callId: string;
      readonly tool: string;
      readonly shown?: string;
      /** The idempotency key of its effect. The call keeps it on every worker. */
      readonly effectKey?: string;
      /** It did not start after all: its worker handed the task on. */
      readonly withdrawn?: boolean;
    }
  /** The end of a call that a lost worker left open. */
  | { readonly type: 'call-end'; readonly result: { readonly callId: string; readonly state: CallState } }
  /** A user is asked to approve a call, with everything it would do. An answer names `id`. */
  | {
      readonly type: 'approval-question';
      readonly id: string;
      readonly at: number;
      readonly question: ApprovalQuestion;
    }
  /**
   * The result of a call is asked for: from a user (`answer`), or from the page or program that runs it (`client`). `schema` is
   * the JSON Schema of the answer, if it is known.
   */
  | {
      readonly type: 'question-asked';
      readonly kind: 'answer' | 'client';
      readonly id: string;
      readonly at: number;
      readonly question: ApprovalQuestion;
      readonly input: Json;
      readonly schema?: { readonly [key: string]: Json | undefined };
    }
  /** A question that needs no answer any more. */
  | { readonly type: 'question-closed'; readonly id: string; readonly callId: string; readonly why: string }
  /** A user's `always` or `never`. */
  | { readonly type: 'approval-remembered'; readonly key: string; readonly approved: boolean; readonly by?: string }
  | PostponedTurn
  /** A command to the run was carried out. */
  | { readonly type: 'command-handled'; readonly number: number; readonly receipt: string }
  /** The history after the run compacted it. There is at most one. */
  | { readonly type: 'history'; readonly messages: readonly Message[] }
  /** What was not written because the journal budget ran out. There is at most one. */
  | { readonly type: 'journal-truncated'; readonly entries: number; readonly bytes: number };
