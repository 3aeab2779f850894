import {
  type CancellationToken,
  type CancelReason,
  type CancelReasonInit,
  isCancelledError,
  SettingsError,
} from '@whoa/core';
import { type CancelOptions, LADDERS, systemWorld } from '@whoa/core/embed';
import { readCancelOptions } from '@whoa/core/internal';
import { LeaseLostError } from '../errors.ts';
import { type FinalStatus, isFinalStatus, type TaskStatus } from '../ledger/rules/status.ts';
import { type RunnerOptions, StoreFullError } from '../run/runner.ts';
import { createRunner } from '../run/store-runner.ts';
import type { SelfManagedWork } from '../run/work.ts';
import type { StoreCancelReceipt, TaskStore } from '../store.ts';
import type { TaskOutcome, TaskRecord, TaskResponse } from '../task.ts';

/** The state of a registered task. */
interface RegisteredTask {
  readonly key: string;
  readonly taskId: string;
  readonly status: TaskStatus;
  /** Why it was cancelled, if it was. */
  readonly reason: CancelReason | undefined;
}

/** The result of `setStatus`. */
type SetStatusReceipt =
  /** `status` may differ from the one you passed: work that was being cancelled ends `cancelled`. */
  | { readonly result: 'set' | 'unchanged'; readonly status: FinalStatus }
  /** The work stopped because the registry was disposed. It may be registered again. */
  | { readonly result: 'released' }
  /** The lease was lost. Other work may run under this key by now. */
  | { readonly result: 'refused' };

/** Work under a key. Only run it if it is `registered`; otherwise other work runs under the key, or it has ended. */
export type Registration = { readonly key: string; readonly taskId: string } & (
  | {
      readonly result: 'registered';
      /** Cancelled when the task is cancelled or its lease is lost. Stop working then. */
      readonly token: CancellationToken;
      /** Ends the work. Call it, also after a cancel, when no part of the work is running any more. */
      readonly setStatus: (status: FinalStatus) => Promise<SetStatusReceipt>;
    }
  | { readonly result: 'held' | 'ended'; readonly status: TaskStatus }
);

/**
 * Makes work in your own loop cancellable from any process. It holds one tenant's tasks in a store, named by your keys,
 * and renews their leases in the background. Dispose it to stop the work it registered.
 */
export interface CancellationRegistry extends AsyncDisposable {
  /** Registers work and claims it. The key defaults to a new id. */
  register(options?: { readonly key?: string | undefined }): Promise<Registration>;
  /** Cancels the work that was registered under a key, in any process. */
  cancel(key: string, reason?: CancelReasonInit, options?: CancelOptions): Promise<StoreCancelReceipt>;
  /** True from the moment a cancel is accepted. */
  isCancelled(key: string): Promise<boolean>;
  /** Returns the state of the work, also after its end. */
  get(key: string): Promise<RegisteredTask | undefined>;
}

export interface CancellationRegistryOptions
  extends Pick<
    RunnerOptions,
    'worker' | 'leaseMs' | 'pollIntervalMs' | 'channel' | 'cancellationChecker' | 'hooks' | 'world'
  > {
  readonly store: TaskStore;
  /** The tenant that owns the tasks. */
  readonly tenant: string;
}

/** The agent name of registered tasks. No runner has an agent with this name, so no runner takes them. */
const AGENT = 'registered';

/**
 * Creates a registry that makes your own work cancellable by key, for one tenant.
 *
 * @returns The registry. Dispose it when its work has ended.
 * @throws {@link StoreFullError}, from `register`, when too many tasks are waiting.
 */
export function createCancellationRegistry(options: CancellationRegistryOptions): CancellationRegistry {
  const { tenant, ...rest } = options;
  const { store, world = systemWorld } = rest;
  const held = new Map<string, HeldTask>();
  const work: SelfManagedWork = { runTask: ({ task, token }) => held.get(task.id)!.hold(token) };
  const runner = createRunner({ ...rest, agents: { [AGENT]: work } });
  const find = (key: string): Promise<TaskRecord | undefined> => store.find({ tenant, key });

  async function register(key: string): Promise<Registration> {
    const receipt = await store.create({ tenant, agent: AGENT, input: null, key, preferredWorker: runner.worker });
    if (receipt.result === 'rejected')
      throw new Error('A task without a conversation was rejected; this is a bug in the store');
    if (receipt.result === 'full') throw new StoreFullError(receipt);
    const { id: taskId, agent, status } = receipt.task;
    if (agent !== AGENT)
      throw new SettingsError(
        'key',
        `'${key}' belongs to a task of the agent '${agent}'; only its runners can work on it`,
      );
    const about = { key, taskId };
    if (held.has(taskId)) return { ...about, result: 'held', status };
    const mine = new HeldTask(taskId);
    held.set(taskId, mine);
    const ended = runner.runExisting({ tenant, id: taskId }, { wait: false }).finally(() => held.delete(taskId));
    const started = await Promise.race([mine.started, ended]);
    if (!(started instanceof HeldTask))
      return { ...about, result: isFinalStatus(started.status) ? 'ended' : 'held', status: started.status };
    const finished = waitForReceipt(ended);
    return {
      ...about,
      result: 'registered',
      token: mine.token!,
      async setStatus(wanted) {
        const isFirst = mine.end(wanted);
        const set = await finished();
        return isFirst || set.result !== 'set' ? set : { ...set, result: 'unchanged' };
      },
    };
  }

  return {
    register: ({ key = world.createId() } = {}) => register(key),
    async cancel(key, reason = {}, cancelOptions = {}) {
      const checked = readCancelOptions(cancelOptions, 'graceful');
      const task = await find(key);
      return task === undefined ? { result: 'not-found' } : store.cancel({ tenant, id: task.id }, reason, checked);
    },
    async isCancelled(key) {
      const status = (await find(key))?.status;
      return status === 'cancelling' || status === 'cancelled';
    },
    async get(key) {
      const task = await find(key);
      if (task === undefined) return undefined;
      const { id: taskId, status, stop, outcome } = task;
      return { key, taskId, status, reason: stop?.reason ?? outcome?.reason };
    },
    async [Symbol.asyncDispose]() {
      const disposed = runner[Symbol.asyncDispose]();
      // Don't hand back work that does not stop: it would run twice. It keeps its claim until its lease ends.
      const timer = world.clock.setTimer(LADDERS.now.abortMs!, () => {
        for (const task of held.values()) task.abandon();
      });
      await disposed;
      timer[Symbol.dispose]();
    },
  };
}

/** Creates the function that returns the receipt of `setStatus` once the runner has finished with the work. */
function waitForReceipt(ended: Promise<TaskResponse>): () => Promise<SetStatusReceipt> {
  const finished = ended.then(
    ({ status }): SetStatusReceipt => ({ result: 'set', status: status as FinalStatus }),
    (error: unknown): SetStatusReceipt => {
      if (isCancelledError(error)) return { result: 'released' };
      if (error instanceof LeaseLostError) return { result: 'refused' };
      throw error;
    },
  );
  finished.catch(() => {}); // Callers of `setStatus` get the error.
  return () => finished;
}

/** The caller's work, between its claim and its end. */
class HeldTask {
  token: CancellationToken | undefined;
  readonly #taskId: string;
  readonly #started = Promise.withResolvers<HeldTask>();
  readonly #outcome = Promise.withResolvers<TaskOutcome>();
  #isEnded = false;

  constructor(taskId: string) {
    this.#taskId = taskId;
    // It may be abandoned before anything waits for it.
    this.#outcome.promise.catch(() => {});
  }

  /** Resolves with itself when the work is claimed. */
  get started(): Promise<HeldTask> {
    return this.#started.promise;
  }

  /** Resolves when the caller reports the end of the work. A cancel does not end work that still runs. */
  hold(token: CancellationToken): Promise<TaskOutcome> {
    this.token = token;
    this.#started.resolve(this);
    return this.#outcome.promise;
  }

  /** Returns whether this was the first end. */
  end(status: FinalStatus): boolean {
    const isFirst = !this.#isEnded;
    this.#isEnded = true;
    const reason = this.token?.reason;
    this.#outcome.resolve(status === 'cancelled' && reason !== undefined ? { status, reason } : { status });
    return isFirst;
  }

  abandon(): void {
    this.#isEnded = true;
    this.#outcome.reject(new LeaseLostError(this.#taskId, 0));
  }
}
