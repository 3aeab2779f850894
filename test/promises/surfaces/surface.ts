// A surface starts and stops an agent. All of them have the same interface, so that a promise can be tested through each.
import type { CallResult, CancelReason, CancelReasonInit, StopMode, StopReport } from '@whoa/core';
import type { HistoryEntry } from '@whoa/core/testing';
import type { Fixture } from '../fixture.ts';

export interface Surface {
  readonly name: string;
  open(fixture: Fixture): Promise<Harness>;
}

/** Accepts prompts, one at a time or in parallel. */
interface Harness extends AsyncDisposable {
  start(prompt: string): Promise<RunningPrompt>;
}

export interface RunningPrompt {
  readonly id: string;
  cancel(reason?: CancelReasonInit, options?: { readonly mode?: Preset; readonly undo?: boolean }): Promise<Receipt>;
  /** Resolves when the process that runs it has received the cancel. */
  cancelReceived(): Promise<void>;
  /** How it ended, as the caller that started it sees it. */
  end(): Promise<PromptResult>;
  /** How it ended, as stored, read again. */
  read(): Promise<PromptResult>;
  /** The text of the reply that the caller has seen so far. */
  readText(): Promise<string>;
  /** Everything seen so far, in the order of time, for `checkHistory`. */
  history(): Promise<readonly HistoryEntry[]>;
}

/** The modes that every surface supports. */
type Preset = Extract<StopMode, string>;

export interface Receipt {
  /** `sent`: the surface only accepts the cancel, and does not report its result. */
  readonly result: 'accepted' | 'escalated' | 'unchanged' | 'too-late' | 'not-found' | 'sent';
  readonly reason?: CancelReason;
  readonly status?: string;
}

export interface PromptResult {
  readonly status: string;
  readonly reason?: CancelReason | undefined;
  readonly text: string;
  readonly calls: readonly Pick<CallResult, 'callId' | 'tool' | 'state' | 'content'>[];
  readonly report?: StopReport | undefined;
}
