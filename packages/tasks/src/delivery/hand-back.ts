import { sleep } from '@whoa/core';
import { LeaseLostError } from '../errors.ts';
import { RETRY_DELAY_MS, type WorkerContext } from './worker-context.ts';
import type { ClaimRef, SessionRef, TakenTask } from './worker-store.ts';

/** The longest pause between two requests while the store is away. */
const MAX_PAUSE_MS = 5_000;

/**
 * Hands back claims of this worker whose work has stopped. It repeats each request until the store answers, however long
 * that takes: a claim that is not handed back counts as a crash. A worker that stops waits for one lease at most.
 */
export class HandBack implements Disposable {
  readonly #context: WorkerContext;
  /** The requests without an answer. */
  readonly #pending = new Set<() => void>();
  #timer: Disposable | undefined;
  #isOver = false;

  constructor(context: WorkerContext) {
    this.#context = context;
    context.shutdown.onCancel(() => {
      // Higher levels of the same shutdown do not extend it.
      this.#timer ??= context.world.clock.setTimer(context.leaseMs, () => this[Symbol.dispose]());
    });
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#timer?.[Symbol.dispose]();
    for (const cancelRemoteTask of this.#pending) cancelRemoteTask();
  }

  /** Hands back one claim. */
  claim(claim: ClaimRef): void {
    this.#context.background(this.#release(claim));
  }

  /** Hands back tasks that arrived for a session that is over. */
  refuse(tasks: readonly Pick<TakenTask, 'claim'>[]): { readonly result: 'session-ended' } {
    for (const { claim } of tasks) this.claim(claim);
    return { result: 'session-ended' };
  }

  /** Hands back what the store may list for a session that is over: the answer to a take or claim was lost. */
  session(ref: SessionRef, holders: Iterable<Pick<TakenTask, 'claim'>>): void {
    // These are still being stopped, and are handed back afterwards.
    const running = new Set(Array.from(holders, ({ claim }) => `${claim.id} ${claim.claim}`));
    this.#context.background(this.#releaseUnknown(ref, running));
  }

  /** Looks twice, because the take may still be on its way. */
  async #releaseUnknown({ session }: SessionRef, running: ReadonlySet<string>): Promise<void> {
    const { store, leaseMs, shutdown } = this.#context;
    for (const pauseMs of [0, leaseMs / 3]) {
      if (pauseMs > 0) await this.#pause(pauseMs);
      if (pauseMs > 0 && shutdown.isCancelled) return;
      const held = (await this.#retryWhileUnavailable(() => store.held({ session }))) ?? [];
      const unknown = held.filter(({ id, claim }) => !running.has(`${id} ${claim}`));
      await Promise.all(unknown.map((one) => this.#release({ ...one, session })));
    }
  }

  async #release(claim: ClaimRef): Promise<void> {
    await this.#retryWhileUnavailable(() => this.#context.store.release(claim));
  }

  async #retryWhileUnavailable<T>(ask: () => Promise<T>): Promise<T | undefined> {
    for (let pauseMs = RETRY_DELAY_MS; !this.#isOver; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
      try {
        return await this.#answer(ask());
      } catch (error) {
        // The store has answered: the task is not ours.
        if (error instanceof LeaseLostError) return undefined;
        this.#context.onStoreError(error);
      }
      await this.#pause(pauseMs);
    }
    return undefined;
  }

  /** Resolves with the answer, or with nothing once the worker has stopped for too long. */
  #answer<T>(work: Promise<T>): Promise<T | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<T | undefined>();
    const cancelRemoteTask = (): void => resolve(undefined);
    this.#pending.add(cancelRemoteTask);
    work.then(resolve, reject).finally(() => this.#pending.delete(cancelRemoteTask));
    return promise;
  }

  /** Pauses. A shutdown ends a long pause, so that the request is repeated immediately. */
  async #pause(ms: number): Promise<void> {
    const { world, shutdown } = this.#context;
    if (shutdown.isCancelled) await this.#context.pause();
    else await sleep(ms, { clock: world.clock, token: shutdown }).catch(() => {});
  }
}
