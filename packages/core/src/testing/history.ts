import type { RunEvent } from '../run/report/events.ts';
import type { Outcome } from '../run/report/outcome.ts';
import type { CancelReason } from '../stop/token/reason.ts';
import type { CancelReceipt } from '../stop/token/receipt.ts';

/** One observation. Entries are in the order in which they were observed. */
export type HistoryEntry =
  | { readonly seen: 'event'; readonly event: RunEvent }
  | { readonly seen: 'receipt'; readonly runId: string; readonly receipt: CancelReceipt }
  /** The outcome itself, not a copy: it must not change after it was announced. */
  | { readonly seen: 'outcome'; readonly runId: string; readonly outcome: Outcome }
  | ({ readonly seen: 'effect' } & Effect)
  | { readonly seen: 'call-cancel'; readonly runId: string; readonly callId: string }
  /** A token that should have nothing under it any more. */
  | { readonly seen: 'leftovers'; readonly name: string; readonly children: number; readonly listeners: number }
  /** Resources that should be gone, as the operating system reports them: processes, sockets, files. */
  | { readonly seen: 'left'; readonly where: string; readonly things: readonly string[] }
  /** A task's record, as an observer read it. */
  | { readonly seen: 'task'; readonly task: TaskSeen }
  /** The receipt of a cancel in a store. */
  | { readonly seen: 'task-receipt'; readonly id: string; readonly receipt: TaskReceipt }
  /** A task's journal from its beginning, as an observer read it. */
  | { readonly seen: 'journal'; readonly id: string; readonly entries: readonly JournalSeen[] }
  /** A worker tried to write under an epoch. */
  | { readonly seen: 'write'; readonly id: string; readonly epoch: number; readonly accepted: boolean }
  /** A caller asked for another tenant's task, and for one that does not exist: the results must not differ. */
  | { readonly seen: 'stranger'; readonly asked: string; readonly answer: unknown; readonly forMissing: unknown };

/** What a tool really did, as the tool itself reports. */
export interface Effect {
  readonly callId: string;
  readonly tool: string;
  /** `cut`: the signal of a call that must finish fired before its own time limit. */
  readonly phase: 'begin' | 'resolve' | 'reject' | 'cut' | 'undo-begin' | 'undo-resolve' | 'undo-reject';
}

/** The fields that every store keeps of a task, and any others that this store keeps. */
export interface TaskSeen {
  readonly id: string;
  readonly status: string;
  readonly epoch: number;
  readonly stop?: { readonly reason: CancelReason };
  readonly outcome?: { readonly reason?: CancelReason };
}

export interface TaskReceipt {
  readonly result: 'accepted' | 'escalated' | 'unchanged' | 'too-late' | 'not-found';
  readonly status?: string;
  readonly reason?: CancelReason;
}

export interface JournalSeen {
  readonly position: number;
  readonly epoch: number;
  readonly event: unknown;
}

/** A promise that a history shows to be broken. */
export interface Violation {
  readonly promise: `P${1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 | 13 | 14}`;
  readonly what: string;
}
