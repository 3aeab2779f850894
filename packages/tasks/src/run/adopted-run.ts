import { isCancelledError, type Run, type RunOptions } from '@whoa/core';
import type { TaskRecord } from '../task.ts';

/** What a runner needs from a run that it adopts. Pass these options to `agent.run`. */
export type AdoptOptions = Required<
  Pick<RunOptions, 'beforeTurn' | 'beforeRequest' | 'beforeCall' | 'beforeUndo' | 'answer'>
>;

/** Why an adopted run and its task are cancelled if it cannot be claimed now: it waits for nothing. */
export const PAUSED = { kind: 'paused', message: 'delivery is paused' } as const;

/**
 * A run that started before its task was claimed. Its calls and undos wait for the claim: after a crash the journal would
 * otherwise not show that they may have run.
 */
export class AdoptedRun {
  readonly adopted: Run;
  /** Resolves with `undefined` if the run does not become a task. */
  readonly #claimed = Promise.withResolvers<AdoptOptions | undefined>();
  #claim: AdoptOptions | undefined;

  constructor(start: (options: AdoptOptions) => Run) {
    this.adopted = start({
      // Don't wait for the claim here: a model's words have no effects, and the user waits for them.
      beforeTurn: (turn) => this.#claim?.beforeTurn?.(turn),
      beforeRequest: () => this.#claim?.beforeRequest?.(),
      beforeCall: async (call, context) => (await this.#claimed.promise)?.beforeCall?.(call, context),
      answer: async (request, context) => {
        const claim = await this.#claimed.promise;
        if (claim === undefined) throw new Error('no one can be asked: it did not become a task');
        return claim.answer?.(request, context);
      },
      beforeUndo: async (call) => (await this.#claimed.promise)?.beforeUndo?.(call),
    });
  }

  /** Called when the task is claimed: from now on calls and undos are written to its journal before they start. */
  claim(options: AdoptOptions): void {
    this.#claim = options;
    this.#claimed.resolve(options);
  }

  /** Called when the runner has finished with the task. If it was never claimed here, the run must not continue. */
  finish({ outcome, status }: TaskRecord): void {
    if (this.#claim !== undefined) return;
    const lost = { kind: 'lease-lost', message: 'another worker took the task' };
    this.adopted.cancel(outcome?.reason ?? (status === 'init' ? PAUSED : lost), { mode: 'now' });
    this.#claimed.resolve(undefined);
  }

  /** Called when it cannot become a task. If the runner was stopped, so is the run; otherwise it continues without a task. */
  fail(error: unknown): never {
    if (isCancelledError(error)) this.adopted.cancel(error.reason, { mode: 'now' });
    this.#claimed.resolve(undefined);
    throw error;
  }
}
