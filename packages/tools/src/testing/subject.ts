import type { Tool } from '@whoa/core';

/** A tool and what the contract needs to use it. Each case creates its own and disposes it. */
export interface ToolUnderTest extends Partial<AsyncDisposable> {
  readonly tool: Tool;
  /** The input of a call that succeeds. */
  readonly input: unknown;
  /** A call that is still running when `whenBusy` resolves. */
  readonly slow: { readonly input: unknown; readonly whenBusy?: () => Promise<void> };
  /** Lists what calls left behind outside: temp files, rows, processes. */
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
  | 'throws-after-abort'
  | 'finds-out'
  | 'finds-out-other-key'
  | 'finds-out-late-effect'
  | 'finds-out-in-time'
  | 'finds-out-while-down';
