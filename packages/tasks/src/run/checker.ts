import type { CancellationToken, CancelReasonInit } from '@whoa/core';
import { waitUntilLevel } from '@whoa/core/embed';
import type { CancellationStore } from '../cancellations/cancellation-store.ts';
import type { WorkerContext } from '../delivery/worker-context.ts';
import type { FinalStatus } from '../ledger/rules/status.ts';
import type { TaskRecord } from '../task.ts';
import type { CancellationChecker, RunnerOptions } from './runner.ts';

/** A checker that has not returned after this long has failed. */
const CHECKER_MS = 5_000;

type Answer = CancelReasonInit | undefined;

/** Asks the custom checker and the cancellation store, if there are any. Errors they throw are reported. */
export class Checker {
  readonly #context: WorkerContext;
  readonly #cancellations: CancellationStore | undefined;
  /** Tasks with a check in progress. */
  readonly #asking = new Set<string>();
  /** Tasks that the cancellation store knows. */
  readonly #registered = new Set<string>();
  #check: CancellationChecker | undefined;

  constructor(
    context: WorkerContext,
    { cancellationChecker, cancellations }: Pick<RunnerOptions, 'cancellationChecker' | 'cancellations'>,
  ) {
    this.#context = context;
    this.#check = cancellationChecker;
    this.#cancellations = cancellations;
  }

  set(checker: CancellationChecker | undefined): void {
    this.#check = checker;
  }

  /** Calls `listener` when a cancel is written to the cancellation store. */
  listen(listener: (taskId: string) => void): Disposable | undefined {
    return this.#cancellations?.onCancel(listener);
  }

  /** Whether no check of this task is in progress. Polls ask it, so that a slow checker is not called twice. */
  isIdle(taskId: string): boolean {
    return !this.#asking.has(taskId);
  }

  /** Returns why the work must stop, or `undefined` if it may continue. Never rejects; a cancel ends the wait. */
  async ask(task: TaskRecord, token: CancellationToken): Promise<Answer> {
    if (token.isCancelled) return undefined;
    const { id } = task;
    const asked: Promise<Answer>[] = [];
    const check = this.#check;
    if (check !== undefined) {
      const byChecker = Promise.resolve(task).then((record) => check(id, record));
      asked.push(
        this.#bound(
          id,
          token,
          byChecker.then((isCancelled) => (isCancelled ? VIA_CHECKER : undefined)),
        ),
      );
    }
    if (this.#cancellations !== undefined) asked.push(this.#bound(id, token, this.#lookUp(this.#cancellations, id)));
    if (asked.length === 0) return undefined;
    this.#asking.add(id);
    const answers = await Promise.all(asked);
    this.#asking.delete(id);
    return answers.find((answer) => answer !== undefined);
  }

  /** The task has left this worker. Writes its final status for those who only know the cancellation store. */
  async end(taskId: string, status: FinalStatus | 'released' | 'parked' | 'lost'): Promise<void> {
    this.#registered.delete(taskId);
    if (this.#cancellations === undefined || status === 'released' || status === 'parked' || status === 'lost') return;
    await this.#cancellations.setStatus(taskId, status).catch((error: unknown) => this.#onError(taskId, error));
  }

  async #lookUp(cancellations: CancellationStore, id: string): Promise<Answer> {
    if (this.#registered.has(id) && !(await cancellations.isCancelled(id))) return undefined;
    const { status, reason } = await cancellations.register(id, 'running');
    this.#registered.add(id);
    return status === 'cancelled' ? { ...VIA_CHECKER, ...(reason !== undefined && { message: reason }) } : undefined;
  }

  async #bound(id: string, token: CancellationToken, asked: Promise<Answer>): Promise<Answer> {
    const late = new Error(`The cancellation checker did not return within ${CHECKER_MS} ms`);
    let timer: Disposable | undefined;
    const answer = new Promise<Answer>((resolve, reject) => {
      timer = this.#context.world.clock.setTimer(CHECKER_MS, () => reject(late));
      asked.then(resolve, reject);
    });
    answer.catch((error: unknown) => this.#onError(id, error));
    const end = await waitUntilLevel(answer, token, 'drain');
    timer?.[Symbol.dispose]();
    return end.by === 'value' ? end.value : undefined;
  }

  #onError(id: string, error: unknown): void {
    this.#context.emit({ type: 'checker-error', id, error });
  }
}

const VIA_CHECKER: CancelReasonInit = { kind: 'user', via: 'checker' };
