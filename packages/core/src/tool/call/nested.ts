import type { CancellationToken } from '../../stop/token/token.ts';
import type { Redact } from '../redact.ts';
import type { ExclusiveKeys } from './exclusive.ts';

/**
 * Marks a tool whose calls are nested runs, and carries their extra context. All copies of this package share the
 * symbol, and it is copied along with a tool or a context.
 */
export const NESTED: unique symbol = Symbol.for('@whoa/core/nested');

/** Where the undo of a nested run happens: within the time limit of the run above it, which also reports it. */
export interface UndoWithin {
  readonly token: CancellationToken;
  readonly beforeUndo: ((call: { readonly callId: string; readonly tool: string }) => unknown) | undefined;
  readonly tell: (event: { readonly type: string }) => void;
}

/** A run inside a call, as the call sees it. */
export interface NestedRun {
  /** Always resolves, when nothing of the run is left. The run itself limits how long that takes. */
  readonly outcome: Promise<unknown>;
  /** Whether it completed anything that can be undone. */
  readonly canUndo: boolean;
  undo(within: UndoWithin): Promise<readonly { readonly tool: string; readonly state: string }[]>;
}

/** A run as seen by the runs inside its calls. */
export interface ParentRun {
  /** Their usage counts as their parent's. */
  readonly addUsage: (usage: { inputTokens: number; outputTokens: number; complete: boolean }) => void;
  /** Whether the parent undoes what they did, so that they need not. */
  readonly undoes: () => boolean;
  /** Reports something that was asked to end and has not yet, so that the parent can name it. */
  readonly leaveRunning: (name: string, ended: PromiseLike<unknown>, waitMs?: number) => void;
}

/** The context of a call that is a nested run. */
export interface NestedContext extends Partial<ParentRun> {
  /** Shared by the whole tree of agents. The run may take the keys that the call itself holds. */
  readonly keys: ExclusiveKeys;
  /** The call is not abandoned before this run has settled, and undoing the call undoes the run. */
  readonly enter: (run: NestedRun) => void;
  /** Redaction applies inside too. */
  readonly redact: Redact | undefined;
}
