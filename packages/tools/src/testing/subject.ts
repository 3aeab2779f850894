import type { Tool } from '@whoa/core';

/** A tool with what the contract needs to know to use it. A fresh one is made for every case and disposed after it. */
export interface ToolUnderTest extends Partial<AsyncDisposable> {
  readonly tool: Tool;
  /** For a call that ends well. */
  readonly input: unknown;
  /** For a call that is still at work when `whenBusy` resolves. */
  readonly slow: { readonly input: unknown; readonly whenBusy?: () => Promise<void> };
  /** Names what calls have left in the outside world: temp files, rows, processes. */
  readonly leftovers?: () => readonly string[] | Promise<readonly string[]>;
}

export type ToolContractCaseId =
  | 'finishes'
  | 'refuses-what-it-cannot-read'
  | 'leaves-nothing'
  | 'cancelled-before-start'
  | 'started-too-late'
  | 'cancelled-in-the-same-tick'
  | 'cancelled-mid-way'
  | 'cancelled-twice'
  | 'cancelled-after-the-end'
  | 'killed-mid-way'
  | 'deaf'
  | 'throws-after-abort';
