import { AsyncLocalStorage } from 'node:async_hooks';
import { type ApprovalAnswer, type Approve, type Ask, createApprovals, type Judge } from '@whoa/core/approval';

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
  /** The `always` and `never` answers of this task. */
  readonly remembered: Pick<Map<string, boolean>, 'get' | 'set'>;
}

export interface TaskApprovalsOptions extends QuestionTimes {
  /** Decides before a user is asked. By default, read-only calls are allowed and users are asked about all others. */
  readonly decide?: Judge;
}

/** How long an `always` answer is valid. */
const UNTIL = 'until this task ends';

/**
 * Creates approvals that users answer through the store, from any process, for as long as the question is open. Pass them
 * to the agent and to the runner.
 *
 * @returns The approvals. Pass `approve` to `createAgent`, and the whole object to `createRunner`.
 */
export function createTaskApprovals({ decide, ...times }: TaskApprovalsOptions = {}): TaskApprovals {
  const current = new AsyncLocalStorage<Approve>();
  return {
    ...times,
    approve(request, context) {
      const approve = current.getStore();
      if (approve === undefined) return 'no user can be asked: the agent does not run as a task';
      return approve(request, context);
    },
    // One per attempt: an `always` answer is valid in one task only.
    runInTask: ({ ask, remembered }, work) =>
      current.run(createApprovals({ ask, remembered, alwaysUntil: UNTIL, ...(decide && { decide }) }), work),
  };
}
