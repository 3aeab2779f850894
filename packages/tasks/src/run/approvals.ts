import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type ApprovalAnswer,
  type ApprovalQuestion,
  type Approve,
  createApprovals,
  type Judge,
} from '@whoa/core/approval';
import type { TaskCommand } from '../task.ts';

/** An answer to an approval question. */
type ApprovalCommand = Extract<TaskCommand, { type: 'approve' }>;

/** Holds calls until a user approves or denies them through the store. Pass it to the agent and to the runner. */
export interface TaskApprovals {
  /** Pass it to `createAgent({ approve })`. */
  readonly approve: Approve;
  /** Runs a function as part of a task, so that `approve` knows which task asks and where to publish its questions. */
  during<T>(task: AskingTask, work: () => T): T;
  /** Handles an answer that came through the store. It may arrive before the question. */
  answer(attempt: string, answer: ApprovalCommand): void;
  /** Call it when the attempt is over. */
  forget(attempt: string): void;
}

interface AskingTask {
  /** Names this attempt. In the same worker, the next attempt of the task may begin before this one is over. */
  readonly attempt: string;
  /** Writes a question to the journal of the task, where clients read it. Call the result when it waits no more. */
  readonly publish: (question: ApprovalQuestion) => () => void;
}

export interface TaskApprovalsOptions {
  /** Decides before a user is asked. By default, read-only calls are allowed and users are asked about all others. */
  readonly judge?: Judge;
}

const GIVEN_UP: ApprovalAnswer = { decision: 'no', why: 'cancelled before a user answered' };

/** How long an `always` answer is valid. */
const UNTIL = 'until this task ends';

/**
 * Creates approvals that users answer through the store, from any process. Pass them to the agent and to the runner.
 *
 * @returns The approvals. Pass `approve` to `createAgent`, and the whole object to `createRunner`.
 */
export function createTaskApprovals(options: TaskApprovalsOptions = {}): TaskApprovals {
  const current = new AsyncLocalStorage<AskingTask>();
  // One per attempt: an `always` answer is valid in one task only, and an attempt that ends late forgets its own.
  const attempts = new Map<string, TaskQuestions>();
  const questionsOf = (attempt: string): TaskQuestions => {
    const known = attempts.get(attempt) ?? new TaskQuestions(options);
    attempts.set(attempt, known);
    return known;
  };

  return {
    approve(request, context) {
      const task = current.getStore();
      if (task === undefined) return 'no user can be asked: the agent does not run as a task';
      const questions = questionsOf(task.attempt);
      questions.publish = task.publish;
      return questions.approve(request, context);
    },
    during: (task, work) => current.run(task, work),
    answer: (attempt, answer) => questionsOf(attempt).answer(answer),
    forget: (attempt) => attempts.delete(attempt),
  };
}

class TaskQuestions {
  readonly approve: Approve;
  publish: AskingTask['publish'] = () => () => {};
  readonly #answers = new Map<string, ApprovalAnswer>();
  readonly #waiting = new Map<string, (answer: ApprovalAnswer) => void>();

  constructor(options: TaskApprovalsOptions) {
    this.approve = createApprovals({
      ...options,
      until: UNTIL,
      ask: (question, { signal }) => this.#ask(question, signal),
    });
  }

  answer({ callId, approved, remember = false }: ApprovalCommand): void {
    const why = typeof approved === 'string' ? { why: approved } : {};
    const decision = approved === true ? (remember ? 'always' : 'yes') : remember ? 'never' : 'no';
    const answer: ApprovalAnswer = { decision, ...why };
    this.#answers.set(callId, answer);
    this.#waiting.get(callId)?.(answer);
  }

  #ask(question: ApprovalQuestion, signal: AbortSignal): Promise<ApprovalAnswer> {
    const known = this.#answers.get(question.callId);
    if (known !== undefined) return Promise.resolve(known);
    // Don't publish a question that can no longer be answered: no event follows that would close it.
    if (signal.aborted) return Promise.resolve(GIVEN_UP);
    const close = this.publish(question);
    return new Promise((resolve) => {
      // Close it here, not when the promise has resolved: whoever brought the answer writes down next what still waits.
      const settle = (answer: ApprovalAnswer): void => {
        close();
        resolve(answer);
      };
      this.#waiting.set(question.callId, settle);
      signal.addEventListener('abort', () => settle(GIVEN_UP), { once: true });
    });
  }
}
