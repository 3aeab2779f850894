import { CancellationToken, sleep } from '@whoa/core';
import { systemWorld, type World } from '@whoa/core/embed';
import { createHookDispatcher, type HookError, type Hooks } from '@whoa/core/internal';
import { LeaseLostError } from '../errors.ts';
import type { FinalStatus } from '../ledger/rules/status.ts';
import type { TaskStore } from '../store.ts';

/** An event that a runner passes to its hooks. */
export type RunnerEvent =
  | {
      readonly type: 'task-start';
      readonly tenant: string;
      readonly id: string;
      readonly epoch: number;
      readonly conversation?: string;
    }
  /** It has ended. */
  | { readonly type: 'task-end'; readonly tenant: string; readonly id: string; readonly status: FinalStatus }
  | {
      readonly type: 'task-left';
      readonly tenant: string;
      readonly id: string;
      /** Why it has not ended here: `released` for another worker, `parked` until it is answered, or `lost` with its lease. */
      readonly status: 'released' | 'parked' | 'lost';
    }
  /** A `cancellationChecker` or the store of `cancellations` threw or rejected. */
  | { readonly type: 'checker-error'; readonly id: string; readonly error: unknown }
  /** A request to the store failed; it is retried. */
  | { readonly type: 'store-error'; readonly error: unknown };

/** What all parts of a worker need. */
export interface WorkerContextOptions {
  readonly store: TaskStore;
  /** This worker's name. It must be unique. */
  readonly worker?: string | undefined;
  readonly leaseMs?: number | undefined;
  /** How often a worker with free capacity asks for tasks, and a checker is called, if nothing else triggers them. */
  readonly pollIntervalMs?: number | undefined;
  readonly hooks?: Hooks<RunnerEvent | HookError> | undefined;
  readonly world?: World | undefined;
}

const RUNNER_DEFAULTS = { leaseMs: 15_000, pollIntervalMs: 1_000 };

/** The pause before a request is repeated that the store failed or did not answer. */
export const RETRY_DELAY_MS = 100;

/** Names are part of claims, so they are short. */
const NAME_CHARACTERS = 12;

/** What all parts of one worker share. */
export class WorkerContext {
  readonly store: TaskStore;
  /** The worker's name. */
  readonly worker: string;
  readonly world: World;
  readonly leaseMs: number;
  readonly pollIntervalMs: number;
  /** Cancelled when the worker stops. */
  readonly shutdown: CancellationToken;
  readonly emit: (event: RunnerEvent) => void;
  readonly onStoreError = (error: unknown): void => this.emit({ type: 'store-error', error });
  readonly #pending = new Set<Promise<unknown>>();

  constructor(options: WorkerContextOptions) {
    this.store = options.store;
    this.world = options.world ?? systemWorld;
    this.worker = options.worker ?? `${process.pid}-${this.world.createId().slice(0, NAME_CHARACTERS)}`;
    this.leaseMs = options.leaseMs ?? RUNNER_DEFAULTS.leaseMs;
    this.pollIntervalMs = options.pollIntervalMs ?? RUNNER_DEFAULTS.pollIntervalMs;
    this.shutdown = new CancellationToken({ name: 'runner', clock: this.world.clock });
    this.emit = createHookDispatcher<RunnerEvent>(options.hooks);
  }

  /** Runs work that no caller awaits. Reports its errors, except a lost lease: that is reported as the task's end. */
  background(work: Promise<unknown>): void {
    this.waitFor(
      work.catch((error: unknown) => {
        if (!(error instanceof LeaseLostError)) this.onStoreError(error);
      }),
    );
  }

  /** Lets the worker stop only when this work has settled. */
  waitFor(work: Promise<unknown>): void {
    this.#pending.add(work);
    work.finally(() => this.#pending.delete(work)).catch(() => {});
  }

  /** Reports an error of the store, and waits a little before the request is repeated. */
  retryAfter(error: unknown): Promise<void> {
    this.onStoreError(error);
    return this.pause();
  }

  /** Waits before a request is repeated. */
  pause(): Promise<void> {
    return sleep(RETRY_DELAY_MS, { clock: this.world.clock });
  }

  async waitForIdle(): Promise<void> {
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
  }
}
