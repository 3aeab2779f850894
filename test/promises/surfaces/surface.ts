// A door through which an agent is started and stopped. Every surface opens the same way, so that a promise can be tried
// at all of them.
import type { CallResult, CancelReason, CancelReasonInit, StopMode, StopReport } from '@whoa/core';
import type { HistoryEntry } from '@whoa/core/testing';
import type { Fixture } from '../fixture.ts';

export interface Surface {
  readonly name: string;
  open(fixture: Fixture): Promise<Stage>;
}

/** Somewhere prompts can be given, one after the other or side by side. */
interface Stage extends AsyncDisposable {
  start(prompt: string): Promise<Performance>;
}

export interface Performance {
  readonly id: string;
  cancel(reason?: CancelReasonInit, options?: { readonly mode?: Preset; readonly undo?: boolean }): Promise<Receipt>;
  /** Resolves when whoever runs it has heard of the cancel. */
  heard(): Promise<void>;
  /** How it ended, as whoever started it is told. */
  end(): Promise<End>;
  /** How it ended, as it is kept, read again. */
  read(): Promise<End>;
  /** The words of the reply that whoever started it has been shown so far. */
  shown(): Promise<string>;
  /** Everything seen so far, in the order of time, for `checkHistory`. */
  history(): Promise<readonly HistoryEntry[]>;
}

/** The ladders that every door knows by name. */
type Preset = Extract<StopMode, string>;

export interface Receipt {
  /** A door that only takes the order, and does not say what it did, answers `sent`. */
  readonly result: 'accepted' | 'escalated' | 'unchanged' | 'too-late' | 'not-found' | 'sent';
  readonly reason?: CancelReason;
  readonly status?: string;
}

export interface End {
  readonly status: string;
  readonly reason?: CancelReason | undefined;
  readonly text: string;
  readonly calls: readonly Pick<CallResult, 'callId' | 'tool' | 'state' | 'content'>[];
  readonly report?: StopReport | undefined;
}
