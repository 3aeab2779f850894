import { toContextKey } from '../stop/app-context.ts';
import type { ApprovalReply, ApprovalRequest, Approve } from '../tool/call/call.ts';
import type { QuestionContext } from '../tool/tool.ts';
import { type ApprovalQuestion, describeRequest, findAlwaysScope } from './question.ts';

/** A user's answer. `always` and `never` apply to the calls that the question says they cover. */
export interface ApprovalAnswer {
  readonly decision: 'yes' | 'no' | 'always' | 'never';
  /** Sent to the model with a `no`. */
  readonly why?: string;
}

/** Shows the user the whole question and returns the answer given after that. */
export type Ask = (question: ApprovalQuestion, context: QuestionContext, asking: Asking) => Promise<ApprovalAnswer>;

/** For questions that wait for long: what would run may have changed by the time of the answer. */
interface Asking {
  readonly request: ApprovalRequest;
  /** Describes the call again, with a new preview. The tool then gets this preview as the one that was shown. */
  readonly describeAgain: () => Promise<ApprovalQuestion>;
  /** What an `always` would be remembered under, if it covers more than this call. A new preview may change it. */
  readonly key?: string | undefined;
}

/** The verdict of a rule on a call, and why. */
interface ApprovalDecision {
  readonly decision: 'allow' | 'ask' | 'deny';
  readonly why?: string;
}

/** Judges a call before a user is asked. */
export type DecideApproval = (request: ApprovalRequest) => ApprovalDecision;

export interface ApprovalsOptions {
  readonly ask: Ask;
  /** How long an `always` is valid, as text: `until this run ends`. */
  readonly alwaysUntil: string;
  /** Decides before a user is asked. By default, calls that only read are allowed and all others need approval. */
  readonly decide?: DecideApproval | undefined;
  /** Holds `always` and `never` answers by what they cover. Defaults to a new map. */
  readonly remembered?:
    | { get(key: string): boolean | undefined; set(key: string, isYes: boolean): unknown }
    | undefined;
  /**
   * Asks about several calls at the same time. Returns whether a question about a call is open: then it is asked again, even if
   * an `always` covers it meanwhile.
   */
  readonly isAsked?: ((callId: string) => boolean) | undefined;
}

/** Only a text is a reason: any other value could be taken for a yes. */
function toNo(why: unknown, otherwise: string | false): string | false {
  return typeof why === 'string' ? why : otherwise;
}

/** Allows reads, asks about everything else. */
const judgeByEffects: DecideApproval = ({ effects }) => ({ decision: effects === 'read' ? 'allow' : 'ask' });

/**
 * Creates the `approve` option of an agent from a function that asks a user. By default it asks one question at a
 * time: an `always` also answers the questions queued behind it. Nothing is allowed that was not shown in full.
 *
 * @returns The function for `createAgent({ approve })`.
 *
 * @example
 * ```ts
 * import { createAgent } from '@whoa/core';
 * import { type Ask, createApprovals } from '@whoa/core/approval';
 *
 * const careful = (ask: Ask) =>
 *   createAgent({ name: 'careful', model, approve: createApprovals({ ask, alwaysUntil: 'until this program ends' }) });
 * ```
 */
export function createApprovals(options: ApprovalsOptions): Approve {
  const { ask, alwaysUntil, decide = judgeByEffects, isAsked } = options;
  const { remembered = new Map<string, boolean>() } = options;
  let last: Promise<unknown> = Promise.resolve();

  async function askNext(request: ApprovalRequest, context: QuestionContext, why?: string): Promise<ApprovalReply> {
    const { signal } = context;
    const describe = async () => {
      const preview = await request.tool.preview?.(request.input, context);
      const coverage = findAlwaysScope(request, preview);
      const alwaysScope = coverage === undefined ? 'this call only' : `${coverage.words}, ${alwaysUntil}`;
      const question = { ...describeRequest(request, preview), alwaysScope, ...(why !== undefined && { why }) };
      // An `always` of one user is not one of another.
      return { preview, question, key: coverage && `${coverage.key} ${toContextKey(context.context)}` };
    };
    if (signal.aborted) return 'cancelled before anyone answered';
    let shown = await describe();
    if (signal.aborted) return 'cancelled before anyone answered';
    const mayKnow = shown.key !== undefined && isAsked?.(request.call.id) !== true;
    const known = mayKnow ? remembered.get(shown.key!) : undefined;
    if (known !== undefined) return known;
    const answer = await ask(shown.question, context, {
      request,
      describeAgain: async () => (shown = await describe()).question,
      get key() {
        return shown.key;
      },
    });
    // Don't accept a yes that arrives after the cancel.
    if (signal.aborted) return 'cancelled before anyone answered';
    const isYes = answer.decision === 'yes' || answer.decision === 'always';
    const isKept = answer.decision === 'always' || answer.decision === 'never';
    if (shown.key && isKept) remembered.set(shown.key, isYes);
    return isYes ? { approved: true, shown: shown.preview } : toNo(answer.why, false);
  }

  const approve: Approve = (request, context) => {
    const { decision, why } = decide(request);
    if (decision === 'allow') return true;
    if (decision === 'deny') return toNo(why, 'a rule denies it');
    if (isAsked !== undefined) return askNext(request, context, why);
    const answer = last.then(() => askNext(request, context, why));
    last = answer.catch(() => {});
    return answer;
  };
  return Object.assign(approve, { isRequired: (request: ApprovalRequest) => decide(request).decision !== 'allow' });
}
