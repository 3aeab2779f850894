import type { CancellationToken, CancelReasonInit } from '@whoa/core';
import { waitUntilLevel } from '@whoa/core/embed';
import type { TaskRecord } from '../../task.ts';
import type { CancellationChecker } from '../runner.ts';
import type { WorkerContext } from '../worker-context.ts';

/** A checker that has not returned after this long has failed. */
const CHECKER_MS = 5_000;

/** Calls the custom checker, if there is one. Errors it throws are reported. */
export class Checker {
  readonly #context: WorkerContext;
  /** Tasks with a check in progress. */
  readonly #asking = new Set<string>();
  #check: CancellationChecker | undefined;

  constructor(context: WorkerContext, check: CancellationChecker | undefined) {
    this.#context = context;
    this.#check = check;
  }

  set(checker: CancellationChecker | undefined): void {
    this.#check = checker;
  }

  /** Whether no check of this task is in progress. Polls ask it, so that a slow checker is not called twice. */
  isIdle(taskId: string): boolean {
    return !this.#asking.has(taskId);
  }

  /** Returns why the work must stop, or `undefined` if it may continue. Never rejects; a cancel ends the wait. */
  async ask(task: TaskRecord, token: CancellationToken): Promise<CancelReasonInit | undefined> {
    const check = this.#check;
    if (check === undefined || token.isCancelled) return undefined;
    const { id } = task;
    this.#asking.add(id);
    const late = new Error(`The cancellation checker did not return within ${CHECKER_MS} ms`);
    let timer: Disposable | undefined;
    const answer = new Promise<boolean>((resolve, reject) => {
      timer = this.#context.world.clock.setTimer(CHECKER_MS, () => reject(late));
      Promise.resolve(task)
        .then((asked) => check(id, asked))
        .then(resolve, reject);
    });
    answer.catch((error: unknown) => this.#context.emit({ type: 'checker-error', id, error }));
    const end = await waitUntilLevel(answer, token, 'drain');
    timer?.[Symbol.dispose]();
    this.#asking.delete(id);
    return end.by === 'value' && end.value ? { kind: 'user', via: 'checker' } : undefined;
  }
}
