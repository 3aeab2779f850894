import type { AppContext } from '../../stop/app-context.ts';
import type { LateResults } from '../../stop/bounded/late-results.ts';
import { isList, safely, unexpected } from '../../stop/settings.ts';
import type { CancellationToken } from '../../stop/token/token.ts';
import type { CallEvent } from '../events.ts';
import type { Redact } from '../redact.ts';
import type { Effects } from '../result.ts';
import type { CallPreview, QuestionContext, Tool } from '../tool.ts';
import type { ExclusiveKeys } from './exclusive.ts';
import type { ParentRun } from './nested.ts';

/** A request to run one tool. */
export interface Call {
  readonly id: string;
  readonly tool: string;
  readonly input: unknown;
  readonly dependsOn?: readonly string[];
  readonly exclusive?: readonly string[];
  /** The effect key that it was started with before, on another worker. */
  readonly effectKey?: string;
}

const CALL = 'a call: { id, tool, input }, and optionally dependsOn and exclusive, which are lists of strings';

/** Copies some calls, so that what was checked is what is run. Throws if one of them is not a call. */
export function readCalls(given: readonly Call[]): readonly Call[] {
  return callsRule(given, 'calls') as readonly Call[];
}

// A plain loop that names no field in advance, for speed: it runs for every call.
const callsRule = safely((given, field) => {
  if (!isList(given)) throw unexpected(field, given, 'a list of calls');
  const calls: Call[] = [];
  for (let index = 0; index < given.length; index++) {
    const call = { ...(given[index] as Call) };
    const { id, tool, dependsOn, exclusive, effectKey = '' } = call;
    const isNamed = typeof id === 'string' && typeof tool === 'string' && typeof effectKey === 'string';
    if (!isNamed || !isTexts(dependsOn) || !isTexts(exclusive))
      throw unexpected(`${field}[${index}]`, given[index], CALL);
    calls.push(call);
  }
  return calls;
});

function isTexts(value: unknown): boolean {
  return value === undefined || (isList(value) && value.every((one) => typeof one === 'string'));
}

/** A call that needs approval. */
export interface ApprovalRequest {
  /** The id of a sub-agent's call starts with the ids of the calls it is inside of: `outer/inner`. */
  readonly call: Call;
  readonly tool: Tool;
  /** A read counts as `write` if its tool says that it needs approval. */
  readonly effects: Effects;
  /** The tools that the call is inside of, outermost first, if it is a sub-agent's. */
  readonly within?: readonly string[];
  /** The input that the tool gets if the call is approved: the call's input as parsed by the tool's schema. */
  readonly input: unknown;
}

/** Approval of the preview that was shown: the tool refuses the call if its preview is no longer true when it runs. */
interface ApprovalOfPreview {
  readonly approved: true;
  readonly shown: CallPreview | undefined;
}

/** An approver's answer. A string is a no, and the model gets it as the reason. */
export type ApprovalReply = boolean | string | ApprovalOfPreview;

/** Called before a call starts. */
export interface Approve {
  (request: ApprovalRequest, context: QuestionContext): ApprovalReply | Promise<ApprovalReply>;
  /** Which calls need approval: all for which it does not return `false`. Defaults to those that write or execute. */
  readonly isRequired?: (request: ApprovalRequest) => boolean;
}

/** Gets the answer to a call whose tool has no code. If it rejects, there is none: a call to a user is then not started. */
export type AnswerCall = (request: ApprovalRequest, context: QuestionContext) => unknown;

/** Awaited before every call starts, whatever its effects. If `beforeCall` rejects, the call is not started. */
export type BeforeCall = (
  call: Call,
  context: { readonly tool: Tool; readonly signal: AbortSignal; readonly effectKey: string },
) => unknown;

/** What a call needs from its runtime. */
export interface CallScope {
  readonly token: CancellationToken;
  /** Absent when there are no listeners: then no event is created. */
  readonly emit: ((event: CallEvent) => void) | undefined;
  readonly approve: Approve | undefined;
  readonly answer: AnswerCall | undefined;
  readonly beforeCall: BeforeCall | undefined;
  readonly redact: Redact | undefined;
  readonly context: AppContext | undefined;
  readonly workId: string | undefined;
  readonly lateResults: LateResults;
  readonly lateKey: (callId: string) => string;
  readonly keys: ExclusiveKeys;
  /** The run these calls belong to, for runs inside them. */
  readonly parent: ParentRun | undefined;
  /** Called when the call has ended: it can no longer be stopped. */
  readonly forget: (callId: string) => void;
  readonly cleanupTimeoutMs: number;
  readonly createEffectKey: () => string;
}
