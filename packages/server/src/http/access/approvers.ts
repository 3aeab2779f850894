import type { ApprovalQuestion } from '@whoa/core/approval';
import type { Clock } from '@whoa/core/embed';
import { waitAtMost } from '@whoa/core/internal';
import type { Question } from '@whoa/tasks';
import type { Principal } from './principal.ts';
import type { ErrorBody } from './refusal.ts';

/** A question that waits, for those who decide who may answer it. */
export interface AnswerableQuestion extends Pick<Question, 'id' | 'callId' | 'kind'> {
  readonly tenant: string;
  /** The id of the task that asks. */
  readonly task: string;
  readonly agent: string;
  readonly conversation?: string;
  /** Who started the task. */
  readonly startedBy?: string;
  readonly tool?: string;
  /** Left out for a call of your own loop. */
  readonly askedAt?: number;
  /** Everything that was shown. Left out for a call of your own loop. */
  readonly about?: ApprovalQuestion;
  /** The input of a call of your own loop. */
  readonly input?: unknown;
}

/** Who may answer questions, in addition to the right `approve`. */
export interface ApproverOptions {
  /**
   * Decides who may answer a question. It is called by the server that receives the answer. Anything but `true` means no,
   * and so does an error, or no decision within 30 s.
   */
  readonly approvers?: ((question: AnswerableQuestion, principal: Principal) => boolean | Promise<boolean>) | undefined;
  /** Whether whoever started a task may answer its questions. Defaults to `true`. */
  readonly starterMayAnswer?: boolean | undefined;
}

/** Returns why a principal may not answer all of these questions, or that there is none; `undefined` if they may. */
export type RefuseAnswer = (
  principal: Principal,
  read: () => Promise<readonly AnswerableQuestion[]>,
) => Promise<ErrorBody['error'] | undefined>;

/** A decision that takes longer is a no. */
const DECIDE_MS = 30_000;
const NONE: ErrorBody['error'] = { code: 'not-approver', message: 'No question is open that you may answer' };
const STARTER: ErrorBody['error'] = {
  code: 'starter',
  message: 'You started this task, so someone else has to answer its questions',
};
const NOT_APPROVER: ErrorBody['error'] = {
  code: 'not-approver',
  message: 'You may not answer this question; ask someone who may',
};

/** Creates the check of who may answer. Questions are read only if there is a rule about them. */
export function createApproverCheck(
  { approvers, starterMayAnswer = true }: ApproverOptions,
  { clock, onError }: { readonly clock: Clock; readonly onError: (error: unknown) => void },
): RefuseAnswer {
  if (approvers === undefined && starterMayAnswer) return () => Promise.resolve(undefined);
  return async (principal, read) => {
    const questions = await read();
    if (questions.length === 0) return NONE;
    if (!starterMayAnswer && questions.some(({ startedBy }) => startedBy === principal.name)) return STARTER;
    if (approvers === undefined) return undefined;
    let isAllowed = false;
    const decide = async (): Promise<void> => {
      // Only a clear yes is one, whatever the function returns at run time.
      for (const question of questions) if ((await approvers(question, principal)) !== true) return;
      isAllowed = true;
    };
    await waitAtMost(decide(), DECIDE_MS, clock).catch(onError);
    return isAllowed ? undefined : NOT_APPROVER;
  };
}
