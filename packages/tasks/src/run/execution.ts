import { CancellationToken, type CancelReason, guard, type Json, type Run, type RunEvent, sleep } from '@whoa/core';
import type { ApprovalQuestion } from '@whoa/core/approval';
import type { CancelOptions, World } from '@whoa/core/embed';
import type { ClaimRef, Orders, TakenTask } from '../delivery.ts';
import { LeaseLostError } from '../errors.ts';
import type { FinalStatus } from '../status.ts';
import type { TaskStore } from '../store.ts';
import type { JournalEntry, NumberedCommand, StopOrder, TaskOutcome, TaskRecord } from '../task.ts';
import type { AdoptedRun } from './adopted-run.ts';
import { followRun, type RecordedWork, runAgent } from './agent-work.ts';
import type { DomainSession } from './claim/domain-session.ts';
import type { Holder } from './claim/holder.ts';
import { Commands } from './commands.ts';
import { ActivityCounter } from './journal/activity.ts';
import { Journal } from './journal/journal.ts';
import { readJournal } from './journal/read-journal.ts';
import { outcomeOfWork } from './outcome.ts';
import { settleTask } from './recovery/settle-task.ts';
import { RETRY_DELAY_MS } from './retry-delay.ts';
import type { RunnerOptions } from './runner.ts';
import { isSameStop, ladderOf, setDeadline } from './stop-times.ts';
import { type HeldContext, isAdopted, isAgent, isHeldWork, type TaskFunction, type Work } from './work.ts';

export interface ExecutionOptions extends Pick<RunnerOptions, 'approvals' | 'resume'> {
  readonly store: TaskStore;
  readonly work: Work | AdoptedRun;
  readonly leaseMs: number;
  /** The session that holds the claim. */
  readonly session: DomainSession;
  readonly flushMs: number;
  readonly world: World;
  /** Checks whether the task must stop. If so, its token is cancelled when this resolves. */
  readonly check: (execution: Execution) => Promise<void>;
  readonly onEvent: ((event: RunEvent) => void) | undefined;
  /** Its work has stopped, and the store does not know how it ended. */
  readonly onUnfinished: (claim: ClaimRef) => void;
  readonly onStoreError: (error: unknown) => void;
}

/** Runs one claimed task until it has ended or the claim is lost. */
export class Execution implements Holder {
  readonly claim: ClaimRef;
  readonly token: CancellationToken;
  readonly #options: ExecutionOptions;
  readonly #journal: Journal;
  readonly #activity: ActivityCounter;
  readonly #commands = new Commands();
  #task: TaskRecord;
  /** The earlier messages; `undefined` until they are loaded. */
  #history: readonly Json[] | undefined;
  /** How far the store's clock is ahead of the local clock. */
  #aheadMs = 0;
  #run: Run | undefined;
  #stop: StopOrder | undefined;
  #lost: LeaseLostError | undefined;
  #isStopped = true;
  readonly #deadline: Disposable;

  constructor({ claim, task, orders, load }: TakenTask, options: ExecutionOptions) {
    const { store, world, session, flushMs, onStoreError } = options;
    const { position, journalBytes } = task;
    this.claim = claim;
    this.#activity = new ActivityCounter(task.activity);
    const { history, ...own } = load ?? { inputs: [] };
    this.#task = { ...task, ...own };
    this.#history = history;
    this.#options = options;
    this.token = new CancellationToken({ name: `task ${claim.id}`, clock: world.clock });
    this.#journal = new Journal({
      store,
      claim,
      clock: world.clock,
      position,
      bytes: journalBytes,
      activity: () => this.#activity.current,
      flushMs,
      onStoreError,
      onWrite: () => session.check(),
      onOrders: (one) => this.obey(one),
      onLost: (error) => this.lose(error),
      onFull: ({ message }) => this.cancel({ kind: 'budget', message }, { mode: 'now' }),
    });
    session.hold(this);
    this.obey(orders);
    this.#deadline = setDeadline(task.deadline, {
      clock: world.clock,
      aheadMs: this.#aheadMs,
      onDue: (reason) => this.cancel(reason, { mode: 'now' }),
    });
  }

  get task(): TaskRecord {
    return this.#task;
  }

  get #attempt(): string {
    return `${this.claim.id}.${this.claim.epoch}`;
  }

  /** Runs the task to its end. Rejects with `LeaseLostError`; then nothing was published. */
  async live(): Promise<FinalStatus | 'released'> {
    let isKnown = false;
    try {
      const outcome = await this.#perform();
      this.#isStopped = true;
      if (this.token.reason?.kind === 'lease-lost') throw this.#lostError();
      await this.#journal.flush();
      const status = await this.#end(outcome);
      isKnown = true;
      return status;
    } finally {
      this.#deadline[Symbol.dispose]();
      this.#options.session.drop(this, { isKnown });
      this.token[Symbol.dispose]();
      // Don't write to a task after handing it back.
      this.#journal.close(this.#lostError());
      // Even a claim that was taken away: this shows that its worker did not crash.
      if (!isKnown && this.#isStopped) this.#options.onUnfinished(this.claim);
      this.#options.approvals?.forget(this.#attempt);
    }
  }

  #lostError(): LeaseLostError {
    return this.#lost ?? new LeaseLostError(this.claim.id, this.claim.epoch);
  }

  /** Estimates the store's time from its last orders: the clocks of machines differ. */
  storeNow(): number {
    return this.#options.world.clock.now() + this.#aheadMs;
  }

  /** Carries out orders of the store. Orders are always complete, so repeating them changes nothing. */
  obey({ now, orderNumber, stop, commands, watched }: Orders): void {
    this.#options.session.confirm(this, orderNumber);
    this.#aheadMs = now - this.#options.world.clock.now();
    this.#journal.watch(watched);
    if (stop !== undefined) this.stop(stop, now);
    for (const command of this.#commands.read({ commands, orderNumber })) this.#carryOut(command);
  }

  /** Carries out a stop order of the store, given its clock. Repeating it changes nothing. */
  stop(order: StopOrder, now: number): void {
    if (this.#stop !== undefined && isSameStop(this.#stop, order)) return;
    this.#stop = order;
    this.token.cancel(order.reason, { mode: ladderOf(order, now), undo: order.undo });
  }

  /** Stops the work now, whatever the store says. */
  cancel(reason: Partial<CancelReason>, options: CancelOptions): void {
    this.token.cancel(reason, options);
  }

  #carryOut(command: NumberedCommand): void {
    const { approvals } = this.#options;
    if (command.type === 'approve') {
      approvals?.answer(this.#attempt, command);
      this.#journal.done(command.number);
    } else if (this.#run === undefined) {
      this.#commands.keep(command);
    } else if (command.type === 'cancel-call') {
      const receipt = this.#run.cancelCall(command.callId, command.reason ?? { via: 'store' });
      this.#journal.add({ type: 'command-done', number: command.number, answer: receipt.answer });
      this.#journal.done(command.number);
    } else if (!this.#commands.steer(this.#run, command)) {
      this.#journal.add({ type: 'command-done', number: command.number, answer: 'refused' });
      // A task that waits behind the message runs later, and reports what is wrong with it.
      if (command.task === undefined) this.#journal.done(command.number);
    }
  }

  fence(): void {
    const message = 'the store could not be reached in time to keep the task';
    this.token.cancel({ kind: 'lease-lost', message }, { mode: { abortMs: this.#options.leaseMs / 4 } });
  }

  lose(error: LeaseLostError): void {
    this.#lost ??= error;
    this.#journal.close(error);
    this.token.cancel({ kind: 'lease-lost', message: error.message }, { mode: { abortMs: 1_000 } });
  }

  async #perform(): Promise<TaskOutcome> {
    const { token } = this;
    const { work, approvals } = this.#options;
    const history = await this.#load();
    const { task } = this;
    const past = await readJournal(this.#options.store, task);
    const given = { task, history, past, token, journal: (event: object) => this.#write(event) };
    const isOverdue = token.reason?.kind === 'deadline';
    if (task.status === 'cancelling' && isHeldWork(work) && work.settle !== undefined) return work.settle(given);
    if (task.status === 'cancelling' || (isOverdue && !isHeldWork(work))) return this.#settle(past);
    await this.#options.check(this);
    // Unless it resolves, it may still run: then the claim must not be handed back.
    this.#isStopped = !isHeldWork(work);
    if (isHeldWork(work)) return work.hold(given);
    if (isAdopted(work)) return followRun(work, this.#recorded(history));
    if (!isAgent(work)) return outcomeOfWork(this.#runFunction(work, given), token);
    const { resume = 'any', world } = this.#options;
    const perform = () => runAgent({ ...this.#recorded(history), agent: work, past, resume, world });
    return (
      approvals?.during({ attempt: this.#attempt, publish: (asked) => this.#publish(asked) }, perform) ?? perform()
    );
  }

  #recorded(history: readonly Json[]): RecordedWork {
    return {
      task: this.task,
      history,
      journal: this.#journal,
      activity: this.#activity,
      token: this.token,
      check: () => this.#options.check(this),
      checkHeld: () => this.#checkHeld(),
      onRun: (run) => this.#begin(run),
      onEvent: (event) => {
        // Not written before it is marked as done: whoever takes over in between would deliver the message again.
        if (event.type === 'steer-delivered') this.#journal.done(this.#commands.delivered(event.message));
        this.#options.onEvent?.(event);
      },
    };
  }

  /** Retries until the store has confirmed that the session survived a sleep of the machine, or the lease is over. */
  async #checkHeld(): Promise<void> {
    while (!this.token.isCancelled) {
      const asking = this.#options.session.check();
      if (asking === undefined) return;
      await asking.catch(this.#options.onStoreError);
      await sleep(RETRY_DELAY_MS, { clock: this.#options.world.clock });
    }
  }

  #runFunction(work: TaskFunction, { token, ...given }: HeldContext): Promise<Json | undefined> {
    return guard((context) => work(Object.assign(context, given)), { name: given.task.agent, token });
  }

  /** Loads the earlier messages, and the inputs if they were not included in the claim. */
  async #load(): Promise<readonly Json[]> {
    if (this.#history === undefined) {
      const { history, ...own } = await this.#options.store.load(this.claim);
      this.#task = { ...this.#task, ...own };
      this.#history = history;
    }
    return this.#history;
  }

  #begin(run: Run): void {
    this.#run = run;
    for (const command of this.#commands.take()) this.#carryOut(command);
  }

  /** Gives the question a random id: only a client that has read it can answer it. */
  #publish(question: ApprovalQuestion): () => void {
    const { world } = this.#options;
    const close = this.#activity.ask();
    this.#journal.add({ type: 'approval-question', id: world.createId(), at: world.clock.now(), question });
    this.#journal.flushSoon();
    return close;
  }

  /** Work that is not an agent writes only what it has done: every step is progress. */
  async #write(event: object): Promise<void> {
    this.#journal.add(event, true);
    await this.#journal.flushWhole();
  }

  #settle(past: readonly JournalEntry[]): Promise<TaskOutcome> {
    const { work, world } = this.#options;
    const context = { task: this.task, history: this.#history ?? [], work, journal: this.#journal, token: this.token };
    return settleTask(past, { ...context, now: world.clock.now() });
  }

  /** Writes the end. After a shutdown of this process, hands the task back instead. */
  async #end(outcome: TaskOutcome): Promise<FinalStatus | 'released'> {
    const { claim } = this;
    const { store, leaseMs, world, onStoreError } = this.#options;
    const until = world.clock.now() + leaseMs;
    for (;;) {
      try {
        if (outcome.status === 'cancelled' && outcome.reason?.kind === 'shutdown' && this.#stop === undefined) {
          await store.release(claim);
          return 'released';
        }
        return (await store.finish(claim, outcome)).status;
      } catch (error) {
        if (error instanceof LeaseLostError) throw error;
        onStoreError(error);
        if (world.clock.now() >= until) throw new LeaseLostError(claim.id, claim.epoch, { cause: error });
      }
      await sleep(RETRY_DELAY_MS, { clock: world.clock });
    }
  }
}
