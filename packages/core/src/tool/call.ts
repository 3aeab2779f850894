import type { Ledger } from '../stop/ledger.ts';
import type { CancellationToken } from '../stop/token.ts';
import type { CallEvent } from './events.ts';
import type { ExclusiveKeys } from './exclusive.ts';
import type { Effects, Tool } from './tool.ts';

/** One tool invocation that somebody wants. */
export interface Call {
  readonly id: string;
  readonly tool: string;
  readonly input: unknown;
  readonly dependsOn?: readonly string[];
  readonly exclusive?: readonly string[];
}

export interface ApprovalRequest {
  readonly call: Call;
  readonly tool: Tool;
  readonly effects: Effects;
}

/** Asked before every call that writes or executes. A text is a no with its reason, which the model is told. */
export type Approve = (
  request: ApprovalRequest,
  context: { signal: AbortSignal },
) => boolean | string | Promise<boolean | string>;

/** Waited for before every call begins, whatever it does. A call whose `beforeCall` rejects is not started. */
export type BeforeCall = (call: Call, context: { readonly tool: Tool; readonly signal: AbortSignal }) => unknown;

/** A call and its tool. */
export interface WantedCall {
  readonly call: Call;
  readonly tool: Tool;
}

/** A call that may begin: its input is valid, everybody said yes, and its exclusive keys are held. */
export interface ReadyCall extends WantedCall {
  readonly input: unknown;
  /** Gives its exclusive keys back, if it has any. */
  readonly release: (() => void) | undefined;
}

/** A call under way, with its own token. */
export interface LiveCall {
  readonly tool: Tool;
  readonly own: CancellationToken | undefined;
}

/** What a call needs from the runtime it runs in. */
export interface CallScope {
  readonly token: CancellationToken;
  /** Absent when nobody listens: then no event is made. */
  readonly tell: ((event: CallEvent) => void) | undefined;
  readonly approve: Approve | undefined;
  readonly beforeCall: BeforeCall | undefined;
  readonly ledger: Ledger;
  readonly ledgerKey: (callId: string) => string;
  readonly keys: ExclusiveKeys;
  readonly live: Map<string, LiveCall>;
  readonly cleanupMs: number;
}
