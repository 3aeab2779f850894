import { guard, type Json, type RunEvent } from '@whoa/core';
import type { Session } from '../delivery/session.ts';
import type { WorkerContext } from '../delivery/worker-context.ts';
import type { ClaimRef, TakenTask } from '../delivery/worker-store.ts';
import { LeaseLostError } from '../errors.ts';
import type { FinalStatus } from '../ledger/rules/status.ts';
import type { TaskOutcome, TaskRecord } from '../task.ts';
import type { AdoptedRun } from './adopted-run.ts';
import { followRun, runAgent } from './agent-work.ts';
import { ClaimHolder } from './claim-holder.ts';
import { readJournal } from './journal/read-journal.ts';
import { outcomeOfWork } from './outcome.ts';
import { ProviderWaiter } from './provider-wait.ts';
import { Parking } from './questions/parking.ts';
import type { RecordedWork } from './recording.ts';
import { type RecoveryState, readRecoveryState } from './recovery/resume.ts';
import { settleTask } from './recovery/settle-task.ts';
import type { RunnerOptions } from './runner.ts';
import {
  isAdopted,
  isAgent,
  isHeldWork,
  type SelfManagedContext,
  type TaskFunction,
  type TaskHandler,
} from './work.ts';

export interface ExecutionOptions extends Pick<RunnerOptions, 'approvals' | 'resume' | 'waitForProvider'> {
  readonly context: WorkerContext;
  readonly work: TaskHandler | AdoptedRun;
  /** The session that holds the claim. */
  readonly session: Session;
  /** Checks whether the task must stop. If so, its token is cancelled when this resolves. */
  readonly check: (execution: Execution) => Promise<void>;
  readonly onEvent: ((event: RunEvent) => void) | undefined;
  /** Its work has stopped, and the store does not know how it ended. */
  readonly onUnfinished: (claim: ClaimRef) => void;
  /** Whether other tasks need the slot of this one. */
  readonly isCrowded: () => boolean;
}

/** How a task left this worker. */
export type ExecutionEnd = FinalStatus | 'released' | 'parked';

/** How long a task that only waits for answers stays with its worker. */
const PARK_AFTER_MS = 10_000;

/** Runs one claimed task until it has ended or the claim is lost. */
export class Execution {
  readonly holder: ClaimHolder;
  readonly parking: Parking;
  readonly #options: ExecutionOptions;
  #task: TaskRecord;
  /** The earlier messages; `undefined` until they are loaded. */
  #history: readonly Json[] | undefined;
  #isStopped = true;
  #waiter: ProviderWaiter | undefined;

  constructor(taken: TakenTask, options: ExecutionOptions) {
    const { history, ...own } = taken.load ?? { inputs: [] };
    this.#task = { ...taken.task, ...own };
    this.#history = history;
    this.#options = options;
    this.holder = new ClaimHolder(taken, options);
    const { context, work, approvals } = options;
    // No other worker can continue an adopted run.
    const canPark = !isAdopted(work);
    const parkAfterMs = canPark ? (approvals?.parkAfterMs ?? PARK_AFTER_MS) : Infinity;
    const isCrowded = (): boolean => canPark && options.isCrowded();
    this.parking = new Parking({ context, holder: this.holder, parkAfterMs, isCrowded });
  }

  get task(): TaskRecord {
    return this.#task;
  }

  /** Runs the task to its end. Rejects with `LeaseLostError`; then nothing was published. */
  async live(): Promise<ExecutionEnd> {
    const { holder } = this;
    let isKnown = false;
    try {
      const outcome = await this.#perform();
      this.#isStopped = true;
      if (holder.isParked) {
        isKnown = true;
        return 'parked';
      }
      if (holder.token.reason?.kind === 'lease-lost') throw holder.lostError;
      await holder.journal.flush();
      const status = await this.#end(outcome);
      isKnown = true;
      return status;
    } finally {
      holder.letGo({ isKnown });
      // Even a claim that was taken away: this shows that its worker did not crash.
      if (!isKnown && this.#isStopped) this.#options.onUnfinished(holder.claim);
      this.parking[Symbol.dispose]();
    }
  }

  async #perform(): Promise<TaskOutcome> {
    const { token, journal, questions } = this.holder;
    const { work, approvals, resume = 'any', context } = this.#options;
    const { world } = context;
    const history = await this.#load();
    const { task } = this;
    const previousJournal = await readJournal(context.store, task);
    const write = async (event: object): Promise<void> => {
      // Work that is not an agent writes only what it has done: every step is progress.
      journal.add(event, true);
      await journal.flushWhole();
    };
    const given = { task, history, previousJournal, token, journal: write };
    const isOverdue = token.reason?.kind === 'deadline';
    if (task.status === 'cancelling' && isHeldWork(work) && work.settle !== undefined) return work.settle(given);
    if (task.status === 'cancelling' || (isOverdue && !isHeldWork(work)))
      return settleTask(previousJournal, { task, history, work, journal, token, now: world.clock.now() });
    await this.#options.check(this);
    // Unless it resolves, it may still run: then the claim must not be handed back.
    this.#isStopped = !isHeldWork(work);
    if (isHeldWork(work)) return work.runTask(given);
    const inTask = <T>(perform: () => T): T => approvals?.runInTask(questions, perform) ?? perform();
    if (isAdopted(work)) return inTask(() => followRun(work, this.#recorded(history)));
    if (!isAgent(work)) return outcomeOfWork(runFunction(work, given), token);
    questions.remembered.restore(previousJournal);
    const recovery = readRecoveryState(previousJournal);
    this.#waiter = this.#createWaiter(recovery);
    const agentWork = { agent: work, recovery, resume, world, approvals, closed: new Map() };
    return inTask(() => runAgent({ ...this.#recorded(history), ...agentWork, waiter: this.#waiter }));
  }

  #recorded(history: readonly Json[]): RecordedWork {
    const { task, holder, parking } = this;
    const { check, onEvent } = this.#options;
    return { task, history, holder, parking, check: () => check(this), checkHeld: () => this.#checkHeld(), onEvent };
  }

  #createWaiter({ wait: before }: RecoveryState): ProviderWaiter | undefined {
    const { waitForProvider: rule, context } = this.#options;
    return rule && new ProviderWaiter({ rule, world: context.world, holder: this.holder, before });
  }

  /** Retries until the store has confirmed that the session survived a sleep of the machine, or the lease is over. */
  async #checkHeld(): Promise<void> {
    const { context, session } = this.#options;
    while (!this.holder.token.isCancelled) {
      const asking = session.check();
      if (asking === undefined) return;
      await asking.catch(context.onStoreError);
      await context.pause();
    }
  }

  /** Loads the earlier messages, and the inputs if they were not included in the claim. */
  async #load(): Promise<readonly Json[]> {
    if (this.#history === undefined) {
      const { history, ...own } = await this.#options.context.store.load(this.holder.claim);
      this.#task = { ...this.#task, ...own };
      this.#history = history;
    }
    return this.#history;
  }

  /** Writes the end. After a shutdown of this process, or to wait for a provider, hands the task back instead. */
  async #end(outcome: TaskOutcome): Promise<FinalStatus | 'released'> {
    const { claim } = this.holder;
    const { delayMs } = this.#waiter ?? {};
    const isLeaving = outcome.status === 'cancelled' && outcome.reason?.kind === 'shutdown';
    const { context } = this.#options;
    const { store, leaseMs, world } = context;
    const until = world.clock.now() + leaseMs;
    for (;;) {
      try {
        // If it was cancelled meanwhile, the store does not delay it, and its next worker settles it.
        if (delayMs !== undefined || (isLeaving && !this.holder.isStopOrdered)) {
          await store.release(claim, delayMs === undefined ? {} : { delayMs });
          return 'released';
        }
        return (await store.finish(claim, outcome)).status;
      } catch (error) {
        if (error instanceof LeaseLostError) throw error;
        context.onStoreError(error);
        if (world.clock.now() >= until) throw new LeaseLostError(claim.id, claim.epoch, { cause: error });
      }
      await context.pause();
    }
  }
}

function runFunction(work: TaskFunction, { token, ...given }: SelfManagedContext): Promise<Json | undefined> {
  return guard((context) => work(Object.assign(context, given)), { name: given.task.agent, token });
}
