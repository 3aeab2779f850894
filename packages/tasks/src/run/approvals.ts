import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type ApprovalAnswer,
  type ApprovalQuestion,
  type Approve,
  createApprovals,
  type Judge,
} from '@whoa/core/approval';
import type { TaskCommand } from '../task.ts';

/** What somebody, anywhere, said to a question. */
type ApprovalCommand = Extract<TaskCommand, { type: 'approve' }>;

/** Holds calls until somebody, anywhere, says yes or no through the store. Give it to the agent and to the runner. */
export interface TaskApprovals {
  /** For `createAgent({ approve })`. */
  readonly approve: Approve;
  /** Runs something as a task, so that `approve` knows whose call it is asked about and where its questions are read. */
  during<T>(task: AskingTask, work: () => T): T;
  /** An answer that came through the store; it may come before the question. */
  answer(taskId: string, answer: ApprovalCommand): void;
  /** The task has ended. */
  forget(taskId: string): void;
}

interface AskingTask {
  readonly id: string;
  /** Writes a question into the journal of the task, where people read it. */
  readonly publish: (question: ApprovalQuestion) => void;
}

export interface TaskApprovalsOptions {
  /** Decides before a person is asked; by default calls that only read are allowed and all others are asked about. */
  readonly judge?: Judge;
}

/** How long an `always` holds. */
const UNTIL = 'until this task ends';

/**
 * Creates approvals that are answered through the store, from anywhere. Give them to the agent and to the runner.
 *
 * @returns The approvals. `approve` goes into `createAgent`, the whole into `createRunner`.
 */
export function createTaskApprovals(options: TaskApprovalsOptions = {}): TaskApprovals {
  const current = new AsyncLocalStorage<AskingTask>();
  // One for each task: what is always allowed in one is not allowed in another.
  const tasks = new Map<string, TaskQuestions>();
  const questionsOf = (id: string): TaskQuestions => {
    const known = tasks.get(id) ?? new TaskQuestions(options);
    tasks.set(id, known);
    return known;
  };

  return {
    approve(request, context) {
      const task = current.getStore();
      if (task === undefined) return 'nobody can be asked: the agent does not run as a task';
      const questions = questionsOf(task.id);
      questions.publish = task.publish;
      return questions.approve(request, context);
    },
    during: (task, work) => current.run(task, work),
    answer: (taskId, answer) => questionsOf(taskId).answer(answer),
    forget: (taskId) => tasks.delete(taskId),
  };
}

class TaskQuestions {
  readonly approve: Approve;
  publish: AskingTask['publish'] = () => {};
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
    this.publish(question);
    return new Promise((resolve) => {
      this.#waiting.set(question.callId, resolve);
      const giveUp = (): void => resolve({ decision: 'no', why: 'cancelled before anybody answered' });
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }
}
