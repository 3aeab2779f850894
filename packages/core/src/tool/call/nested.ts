import type { CancellationToken } from '../../stop/token/token.ts';
import type { Redact } from '../redact.ts';
import type { ExclusiveKeys } from './exclusive.ts';

/** Marks a tool whose calls are nested runs, and carries their context. All copies of this package share it. */
export const NESTED: unique symbol = Symbol.for('@whoa/core/nested');

/** Adds what only nested runs use to a public type, which does not show it. */
export type WithNested<Public, Value> = Public & { readonly [NESTED]?: Value };

/** How an undo ended. `unknown`: it did not end in time. */
export type UndoState = 'undone' | 'failed' | 'unknown';

/** Where an undo happens: within the time limit of the outermost run, and reported to each run around it. */
export interface UndoWithin {
  readonly token: CancellationToken;
  readonly beforeUndo: ((call: { readonly callId: string; readonly tool: string }) => unknown) | undefined;
  readonly emit: (event: { readonly type: string }) => void;
}

/** The undo of one completed call. It must be started at most once. */
export interface UndoStep {
  /** Higher for a call that ended later; 0 for a whole run, which then counts as the call it is in. */
  readonly order: number;
  undo(within: UndoWithin): Promise<UndoState>;
}

/** A run inside a call, as the call sees it. */
export interface NestedRun {
  /** Always resolves, when nothing of the run is left. The run itself limits how long that takes. */
  readonly outcome: Promise<unknown>;
  /** The undos of everything that it completed, in any order. */
  undoSteps(): readonly UndoStep[];
  /** What it finished and has no undo for. Missing in runs of an older version and in custom ones. */
  withoutUndo?(): readonly { readonly callId: string; readonly tool: string }[];
}

/** The accounts of a run, as its calls see them. */
interface RunRequests {
  /** A user is being asked for more: no call starts meanwhile. */
  readonly isAsking: boolean;
  open(token: CancellationToken): Promise<void>;
}

/** A call on the way from the outermost run to a run inside it. */
interface OuterCall {
  readonly callId: string;
  readonly tool: string;
}

/** What a lost worker left of a run inside a call. */
export interface NestedLeft {
  /** Its messages so far, all calls with a result but those in `left`. */
  readonly history: readonly object[];
  /** Calls of its last reply that are still to run. Missing if the model goes on with `input`. */
  readonly left?: readonly object[];
  readonly input?: object;
  /** What its model must know after the calls in `left`. */
  readonly notice?: object;
  /** The ends of its earlier calls. */
  readonly results: readonly object[];
  readonly spent: { readonly turns: number; readonly calls: number; readonly tokens: number };
}

/** Records the runs inside a run, and continues those that a lost worker left. One serves a whole tree of runs. */
export interface NestedRecorder {
  readonly beforeTurn: () => unknown;
  readonly beforeCall: (call: { readonly id: string; readonly tool: string }, context: RecordedCall) => unknown;
  readonly beforeUndo: () => unknown;
  /** `undefined`: the run starts from its input. `answer`: it had ended. */
  readonly resume: (
    path: readonly OuterCall[],
    agent: object,
  ) => Promise<NestedLeft | { readonly answer: string } | undefined>;
}

interface RecordedCall {
  readonly tool: { readonly answeredBy?: 'user' | 'client' };
  readonly effectKey: string;
  /** The calls that the call is inside of, outermost first. */
  readonly path: readonly OuterCall[];
}

/** A run as seen by the runs inside its calls. */
export interface ParentRun {
  /** Their usage counts as their parent's. */
  readonly addUsage: (usage: {
    inputTokens: number;
    cachedInputTokens?: number;
    outputTokens: number;
    isComplete: boolean;
  }) => void;
  /** Whether the parent undoes what they did, so that they need not. */
  readonly undoes: () => boolean;
  /** Reports something that was asked to end and has not yet, so that the parent can name it. */
  readonly leaveRunning: (name: string, ended: PromiseLike<unknown>, waitMs?: number) => void;
  /** What their requests are paid from, if a limit in money is set around them. */
  readonly requests?: RunRequests | undefined;
  /** The calls that the parent is inside of, outermost first. */
  readonly path?: readonly OuterCall[];
  /** Missing unless the outermost run is recorded. */
  readonly recorder?: NestedRecorder | undefined;
}

/** The context of a call that is a nested run. */
export interface NestedContext extends Partial<ParentRun> {
  /** Missing in calls of an older version. */
  readonly workId?: string;
  /** Shared by the whole tree of agents. The run may take the keys that the call itself holds. */
  readonly keys: ExclusiveKeys;
  /** The call is not abandoned before this run has settled, and undoing the call undoes the run. */
  readonly enter: (run: NestedRun) => void;
  /** Redaction applies inside too, and so do the approval and the answers of an agent that has none. */
  readonly redact: Redact | undefined;
  readonly approve: ((...question: never[]) => unknown) | undefined;
  readonly answer?: ((...question: never[]) => unknown) | undefined;
}
