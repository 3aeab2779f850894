import type { Message, RunEvent } from '@whoa/core';
import type { ApprovalQuestion } from '@whoa/core/approval';
import type { CallState } from '@whoa/core/embed';

/** An error as it is kept. */
interface KeptError {
  readonly message: string;
  readonly code?: string;
}

/** What becomes of a value in the store: it is plain data, and errors are what they said. */
type Kept<Value> = Value extends Error
  ? KeptError
  : Value extends (...args: never[]) => unknown
    ? never
    : Value extends object
      ? { readonly [Field in keyof Value]: Kept<Value[Field]> }
      : Value;

/** These are not kept: the end of a run stands in the outcome of its task. */
type NotKept = 'run-end' | 'events-skipped';

/**
 * What stands in the journal of a task that an agent runs: what its run told, and what the journal says of itself. Words
 * come as drafts while somebody reads along; the end of their turn holds all of them. Work that is no agent writes events
 * of its own.
 */
export type JournalEvent =
  | Kept<Exclude<RunEvent, { type: NotKept }>>
  /** A call is about to begin: if nothing more is known of it, it may have had an effect. */
  | { readonly type: 'call-intent'; readonly callId: string; readonly tool: string }
  /** The end of a call that a lost worker left open. */
  | { readonly type: 'call-end'; readonly result: { readonly callId: string; readonly state: CallState } }
  /** A person is asked about a call, with everything that it would do. An answer names `id`, or where this stands. */
  | {
      readonly type: 'approval-question';
      readonly id: string;
      readonly at: number;
      readonly question: ApprovalQuestion;
    }
  /** A command to the run was carried out. */
  | { readonly type: 'command-done'; readonly number: number; readonly answer: string }
  /** The history as the run has made it shorter; there is at most one. */
  | { readonly type: 'history'; readonly messages: readonly Message[] }
  /** What was not written for want of room; there is at most one. */
  | { readonly type: 'journal-cut'; readonly entries: number; readonly bytes: number };
