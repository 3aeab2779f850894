import type { CancellationToken, CancelReasonInit } from '@whoa/core';
import type { Clock } from '@whoa/core/embed';
import { waitUntilLevel } from '@whoa/core/embed';
import type { TaskRecord } from '../../task.ts';

/** Decides whether a task should stop. `task` has its key, conversation and tenant. True means stop `now`. */
export type CancellationChecker = (taskId: string, task: TaskRecord) => boolean | Promise<boolean>;

/** A checker that has not returned after this long has failed. */
const CHECKER_MS = 5_000;

export interface CheckerOptions {
  readonly cancellationChecker?: CancellationChecker | undefined;
  readonly clock: Clock;
  readonly onError: (taskId: string, error: unknown) => void;
}

/** Work that stops when a checker says so. */
export interface Checked {
  readonly task: TaskRecord;
  readonly token: CancellationToken;
}

/** Calls the custom checker, if there is one. Errors it throws are reported. */
export class Checker {
  readonly #options: CheckerOptions;
  /** Tasks with a check in progress. */
  readonly #asking = new Set<string>();
  #check: CancellationChecker | undefined;

  constructor(options: CheckerOptions) {
    this.#options = options;
    this.#check = options.cancellationChecker;
  }

  set(checker: CancellationChecker | undefined): void {
    this.#check = checker;
  }

  /**
   * Whether no check of this task is in progress. Polls use it, so that a slow checker is not called again meanwhile.
   */
  isIdle(taskId: string): boolean {
    return !this.#asking.has(taskId);
  }

  /** Returns why the work must stop, or `undefined` if it may continue. Never rejects; a cancel ends the wait. */
  async ask({ task, token }: Checked): Promise<CancelReasonInit | undefined> {
    const check = this.#check;
    if (check === undefined || token.isCancelled) return undefined;
    const { id } = task;
    this.#asking.add(id);
    const late = new Error(`The cancellation checker did not return within ${CHECKER_MS} ms`);
    let timer: Disposable | undefined;
    const answer = new Promise<boolean>((resolve, reject) => {
      timer = this.#options.clock.setTimer(CHECKER_MS, () => reject(late));
      Promise.resolve(task)
        .then((asked) => check(id, asked))
        .then(resolve, reject);
    });
    answer.catch((error: unknown) => this.#options.onError(id, error));
    const end = await waitUntilLevel(answer, token, 'drain');
    timer?.[Symbol.dispose]();
    this.#asking.delete(id);
    return end.by === 'value' && end.value ? { kind: 'user', via: 'checker' } : undefined;
  }
}
