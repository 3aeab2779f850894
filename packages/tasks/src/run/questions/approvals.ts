import { AsyncLocalStorage } from 'node:async_hooks';
import { type ApprovalAnswer, type Approve, type Ask, createApprovals } from '@whoa/core/approval';
import type { DecideApproval } from '@whoa/core/internal';
import type { QuestionKind } from '../../question.ts';

/** Holds calls until a user approves or denies them through the store. Pass it to the agent and to the runner. */
export interface TaskApprovals extends QuestionTimes {
  /** Pass it to `createAgent({ approve })`. */
  readonly approve: Approve;
  /** Runs a function as part of a task, so that `approve` knows which task asks. */
  runInTask<T>(task: AskingTask, work: () => T): T;
}

/** How long questions wait, and where. */
export interface QuestionTimes {
  /** How long an answer counts. Defaults to 7 days. */
  readonly timeoutMs?: number;
  /**
   * How long a worker keeps a task that only waits for answers. After that the task waits in the store, and the next free
   * worker continues it when the answer comes. A worker without a free slot does not wait. Defaults to 10 s; with
   * `Infinity` the worker keeps it.
   */
  readonly parkAfterMs?: number;
}

/** One attempt at a task, as approvals see it. */
export interface AskingTask {
  /** Asks through the store, and waits for the answer that counts. Only the first question of a call is shown again. */
  readonly ask: Ask;
  /** Answers a question of this task from here, unless it was answered elsewhere. */
  answer(callId: string, answer: ApprovalAnswer, by?: string): Promise<void>;
  /** Whether a question about a call waits for an answer, of this kind if one is given. */
  isAsked(callId: string, kind?: QuestionKind): boolean;
  /** Whether a user approved a call that an earlier worker started, and that continues. */
  isApproved?(callId: string): boolean;
  /** The `always` and `never` answers of this task. */
  readonly remembered: NonNullable<Parameters<typeof createApprovals>[0]['remembered']>;
}

export interface TaskApprovalsOptions extends QuestionTimes {
  /** Decides before a user is asked. By default, read-only calls are allowed and all others need approval. */
  readonly decide?: DecideApproval | undefined;
}

/** How long an `always` answer is valid. */
const UNTIL = 'until this task ends';

/**
 * Creates approvals that users answer through the store, from any process, for as long as the question is open. Pass them
 * to the agent and to the runner.
 *
 * @returns The approvals. Pass `approve` to `createAgent`, and the whole object to `createRunner`.
 */
export function createTaskApprovals({ decide = decideByEffects, ...times }: TaskApprovalsOptions = {}): TaskApprovals {
  const current = new AsyncLocalStorage<Approve>();
  const approve: Approve = (request, context) =>
    current.getStore()?.(request, context) ?? 'no user can be asked: the agent does not run as a task';
  const isRequired: Approve['isRequired'] = (request) =>
    current.getStore()?.isRequired?.(request) ?? decide(request).decision !== 'allow';
  return {
    ...times,
    approve: Object.assign(approve, { isRequired }),
    // One per attempt: an `always` answer is valid in one task only.
    runInTask(task, work) {
      const { ask, remembered } = task;
      // Whoever was asked decides, though another worker's rule may allow the call.
      const decideUnasked: DecideApproval = (request) => {
        const decided = decide(request);
        return decided.decision === 'allow' && task.isAsked(request.call.id, 'approve') ? { decision: 'ask' } : decided;
      };
      // A `never` that came later is not about a call that has started.
      const isAsked = (callId: string): boolean => task.isAsked(callId) || task.isApproved?.(callId) === true;
      const options = { isAsked, alwaysUntil: UNTIL, decide: decideUnasked };
      return current.run(createApprovals({ ask, remembered, ...options }), work);
    },
  };
}

const decideByEffects: DecideApproval = ({ effects }) => ({ decision: effects === 'read' ? 'allow' : 'ask' });
