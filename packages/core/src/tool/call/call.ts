import { isList, safely, unexpected } from '../../stop/settings.ts';
import type { CancellationToken } from '../../stop/token/token.ts';
import type { Ledger } from '../../stop/work/ledger.ts';
import type { CallEvent } from '../events.ts';
import type { Redact } from '../redact.ts';
import type { Effects } from '../result.ts';
import type { CallPreview, Tool } from '../tool.ts';
import type { ExclusiveKeys } from './exclusive.ts';
import type { ParentRun } from './nested.ts';

/** One tool invocation that somebody wants. */
export interface Call {
  readonly id: string;
  readonly tool: string;
  readonly input: unknown;
  readonly dependsOn?: readonly string[];
  readonly exclusive?: readonly string[];
}

const CALL = 'a call: { id, tool, input } and perhaps lists of texts, dependsOn and exclusive';

/** A copy of some calls, so that what was checked is what is run. Throws if one of them is none. */
export function readCalls(given: readonly Call[]): readonly Call[] {
  return callsRule(given, 'calls') as readonly Call[];
}

// A plain loop that names no field in advance: it is run for every call there is.
const callsRule = safely((given, field) => {
  if (!isList(given)) throw unexpected(field, given, 'a list of calls');
  const calls: Call[] = [];
  for (let index = 0; index < given.length; index++) {
    const call = { ...(given[index] as Call) };
    const { id, tool, dependsOn, exclusive } = call;
    const isNamed = typeof id === 'string' && typeof tool === 'string';
    if (!isNamed || !isTexts(dependsOn) || !isTexts(exclusive))
      throw unexpected(`${field}[${index}]`, given[index], CALL);
    calls.push(call);
  }
  return calls;
});

function isTexts(value: unknown): boolean {
  return value === undefined || (isList(value) && value.every((one) => typeof one === 'string'));
}

/** A call that needs a yes. */
export interface ApprovalRequest {
  readonly call: Call;
  readonly tool: Tool;
  readonly effects: Effects;
  /** What the tool is given if the answer is yes: the call's input as the schema of the tool understands it. */
  readonly input: unknown;
}

/** A yes to what was shown: the tool refuses the call if its preview is no longer true when it runs. */
interface ApprovalOfPreview {
  readonly approved: true;
  readonly shown: CallPreview | undefined;
}

/** What an approver says. A text is a no with its reason, which the model is told. */
export type ApprovalReply = boolean | string | ApprovalOfPreview;

/** Asked before a call begins. */
export interface Approve {
  (request: ApprovalRequest, context: { signal: AbortSignal }): ApprovalReply | Promise<ApprovalReply>;
  /** Which calls it is asked about; defaults to those that write or execute. */
  readonly needs?: (request: ApprovalRequest) => boolean;
}

/** Waited for before every call begins, whatever it does. A call whose `beforeCall` rejects is not started. */
export type BeforeCall = (call: Call, context: { readonly tool: Tool; readonly signal: AbortSignal }) => unknown;

/** What a call needs from the runtime it runs in. */
export interface CallScope {
  readonly token: CancellationToken;
  /** Absent when nobody listens: then no event is made. */
  readonly tell: ((event: CallEvent) => void) | undefined;
  readonly approve: Approve | undefined;
  readonly beforeCall: BeforeCall | undefined;
  readonly redact: Redact | undefined;
  readonly ledger: Ledger;
  readonly ledgerKey: (callId: string) => string;
  readonly keys: ExclusiveKeys;
  /** The run these calls belong to, for runs inside them. */
  readonly parent: ParentRun | undefined;
  /** The call has ended: it can no longer be stopped. */
  readonly forget: (callId: string) => void;
  readonly cleanupMs: number;
}
