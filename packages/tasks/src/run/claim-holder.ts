import { CancellationToken, type CancelReasonInit, type StopMode } from '@whoa/core';
import type { CancelOptions } from '@whoa/core/embed';
import type { Holder, Session } from '../delivery/session.ts';
import type { WorkerContext } from '../delivery/worker-context.ts';
import type { ClaimRef, Orders, TakenTask } from '../delivery/worker-store.ts';
import { LeaseLostError } from '../errors.ts';
import { OVERDUE } from '../ledger/rules/rules.ts';
import type { StopOrder } from '../task.ts';
import { Commands } from './commands.ts';
import { ActivityCounter } from './journal/activity.ts';
import { Journal } from './journal/journal.ts';
import type { QuestionTimes } from './questions/approvals.ts';
import { TaskQuestions } from './questions/task-questions.ts';

interface ClaimHolderOptions {
  readonly context: WorkerContext;
  readonly session: Session;
  readonly approvals?: QuestionTimes | undefined;
}

/** How long an answer counts. */
const ANSWER_MS = 7 * 86_400_000;

/** Holds the claim of one task: carries out what the store orders, and stops the work when the claim is lost. */
export class ClaimHolder implements Holder {
  readonly claim: ClaimRef;
  readonly session: Session;
  readonly token: CancellationToken;
  readonly journal: Journal;
  readonly activity: ActivityCounter;
  readonly commands: Commands;
  readonly questions: TaskQuestions;
  isParked: boolean = false;
  unconfirmed: number | undefined;
  readonly #context: WorkerContext;
  readonly #deadline: Disposable | undefined;
  /** How far the store's clock is ahead of the local clock. */
  #aheadMs = 0;
  #stop: StopOrder | undefined;
  #lost: LeaseLostError | undefined;

  constructor({ claim, task, orders }: TakenTask, { context, session, approvals }: ClaimHolderOptions) {
    this.claim = claim;
    this.session = session;
    this.#context = context;
    this.token = new CancellationToken({ name: `task ${claim.id}`, clock: context.world.clock });
    this.activity = new ActivityCounter(task.activity);
    this.journal = new Journal({
      context,
      claim,
      tenant: task.tenant,
      readers: orders.readers,
      position: task.position,
      bytes: task.journalBytes,
      activity: () => this.activity.current,
      onWrite: () => session.check(),
      onOrders: (one) => this.applyOrders(one),
      onDisconnect: (error) => this.onLeaseLost(error),
      onRefused: (closes) => this.questions.reopen(closes),
      onFull: ({ message }) => this.cancel({ kind: 'budget', message }, { mode: 'now' }),
    });
    this.commands = new Commands(this.journal);
    const { journal } = this;
    const { timeoutMs = ANSWER_MS } = approvals ?? {};
    this.questions = new TaskQuestions({ context, claim, tenant: task.tenant, journal, timeoutMs });
    this.questions.onUnread = (callId) => this.commands.interrupt(callId);
    session.hold(this);
    this.applyOrders(orders);
    this.#deadline = this.#setDeadline(task.deadline ?? Infinity);
  }

  /** The store has ordered the task to stop. */
  get isStopOrdered(): boolean {
    return this.#stop !== undefined;
  }

  get lostError(): LeaseLostError {
    return this.#lost ?? new LeaseLostError(this.claim.id, this.claim.epoch);
  }

  /** Lets go of the claim. `isKnown`: the store knows that the task is no longer held. */
  letGo(options: { readonly isKnown: boolean }): void {
    this.#deadline?.[Symbol.dispose]();
    this.session.drop(this, options);
    this.token[Symbol.dispose]();
    // Don't write to a task after handing it back.
    this.journal.close(this.lostError);
  }

  /** Carries out orders of the store. Orders are always complete, so repeating them changes nothing. */
  applyOrders({ now, orderNumber, stop, commands, questions }: Orders): void {
    if (orderNumber > 0) this.unconfirmed = orderNumber;
    this.#aheadMs = now - this.#context.world.clock.now();
    if (stop !== undefined) this.stop(stop);
    this.commands.applyOrders({ commands, orderNumber });
    this.questions.applyOrders({ orderNumber, ...(questions && { questions }) });
  }

  /** Carries out a stop order of the store. Repeating it changes nothing. */
  stop(order: StopOrder): void {
    if (this.#stop !== undefined && isSameStop(this.#stop, order)) return;
    this.#stop = order;
    this.token.cancel(order.reason, { mode: toLadder(order, this.storeNow()), undo: order.undo });
  }

  /** Stops the work now, whatever the store says. */
  cancel(reason: CancelReasonInit, options: CancelOptions): void {
    this.token.cancel(reason, options);
  }

  fence(): void {
    const message = 'the store could not be reached in time to keep the task';
    this.token.cancel({ kind: 'lease-lost', message }, { mode: { abortMs: this.#context.leaseMs / 4 } });
  }

  onLeaseLost(error: LeaseLostError): void {
    this.#lost ??= error;
    this.journal.close(error);
    this.token.cancel({ kind: 'lease-lost', message: error.message }, { mode: { abortMs: 1_000 } });
  }

  /** The task waits in the store from now on: what is left of its run here ends, and nothing more is written. */
  park(): void {
    this.isParked = true;
    this.journal.close(this.lostError);
    this.token.cancel({ kind: 'shutdown', message: 'the task waits for an answer' }, { mode: 'now' });
  }

  /** Estimates the store's time from its last orders: the clocks of machines differ. */
  storeNow(): number {
    return this.#context.world.clock.now() + this.#aheadMs;
  }

  /** Stops the work at a deadline of the store's clock; immediately if it has passed. */
  #setDeadline(deadline: number): Disposable | undefined {
    const due = (): void => this.cancel(OVERDUE, { mode: 'now' });
    const leftMs = deadline - this.storeNow();
    if (leftMs > 0) return this.#context.world.clock.setTimer(leftMs, due, { keepAlive: false });
    due();
    return undefined;
  }
}

/** Converts a stop order to a ladder from now on. The clocks may differ, but time distances do not. */
function toLadder({ level, abortAt, killAt }: StopOrder, now: number): StopMode {
  const drainMs = Math.max(0, abortAt - now);
  const abortMs = Math.max(0, killAt - Math.max(abortAt, now));
  if (level === 'kill' || now >= killAt) return 'kill';
  return level === 'abort' || drainMs === 0 ? { abortMs } : { drainMs, abortMs };
}

/** Compares stop orders without the reason: a task has only one. */
function isSameStop(a: StopOrder, b: StopOrder): boolean {
  return a.level === b.level && a.abortAt === b.abortAt && a.killAt === b.killAt && a.undo === b.undo;
}
