import type { CancellationToken } from '../../stop/token/token.ts';
import type { Redact } from '../redact.ts';
import type { ExclusiveKeys } from './exclusive.ts';

/**
 * Marks a tool whose calls are runs of their own, and carries what such a call is given beyond the usual. A symbol that
 * all copies of this package share, and that is copied along when a tool or a context is.
 */
export const NESTED: unique symbol = Symbol.for('@whoa/core/nested');

/** Where the undo of a nested run happens: within the time, and before the eyes, of the run above it. */
export interface UndoWithin {
  readonly token: CancellationToken;
  readonly beforeUndo: ((call: { readonly callId: string; readonly tool: string }) => unknown) | undefined;
  readonly tell: (event: { readonly type: string }) => void;
}

/** A run inside a call, as the call sees it. */
export interface NestedRun {
  /** Resolves when nothing of the run is left; always, and bounded by the run itself. */
  readonly outcome: Promise<unknown>;
  /** Whether it completed anything that can be undone. */
  readonly canUndo: boolean;
  undo(within: UndoWithin): Promise<readonly { readonly tool: string; readonly state: string }[]>;
}

/** What a run is to the runs inside its calls. */
export interface ParentRun {
  /** What they spend, their parent spends. */
  readonly addUsage: (usage: { inputTokens: number; outputTokens: number; complete: boolean }) => void;
  /** Whether it undoes what they did, so that they need not. */
  readonly undoes: () => boolean;
  /** Tells it of something that was asked to end and has not yet, so that it can be named. */
  readonly leaveRunning: (name: string, ended: PromiseLike<unknown>, waitMs?: number) => void;
}

/** What a call that is a run of its own is given. */
export interface NestedContext extends Partial<ParentRun> {
  /** Shared over the tree of agents. What the call itself holds, its run may take. */
  readonly keys: ExclusiveKeys;
  /** The call is not given up on before this run has settled, and undoing the call undoes the run. */
  readonly enter: (run: NestedRun) => void;
  /** What is taken out of results holds inside too. */
  readonly redact: Redact | undefined;
}
