import {
  CancellationToken,
  type CancelReason,
  guard,
  type Json,
  type Run,
  type StopHow,
  type UserMessage,
  type World,
} from '@whoa/core';
import { type JournalFullError, LeaseLostError } from '../errors.ts';
import type { FinalStatus } from '../status.ts';
import type { Claim, Orders, TaskStore } from '../store.ts';
import type { JournalEntry, NumberedCommand, StopOrder, TaskOutcome, TaskRecord } from '../task.ts';
import { historyBefore, runAgent } from './agent-work.ts';
import type { Approvals } from './approvals.ts';
import { Journal } from './journal.ts';
import { Lease } from './lease.ts';
import { outcomeOfWork, saidIn } from './outcome.ts';
import { readJournal } from './read-journal.ts';
import { settle, standingOf } from './resume.ts';
import { undoLost } from './undo.ts';
import { isAgent, type Work } from './work.ts';

/** A store that cannot be reached is asked again this often while the end of a task is written. */
const RETRY_MS = 100;

export interface ExecutionOptions {
  readonly store: TaskStore;
  readonly work: Work;
  readonly leaseMs: number;
  /** When the store was asked for the claim. */
  readonly askedAt: number;
  readonly flushMs: number;
  readonly unwatchedFlushMs: number;
  readonly approvals: Approvals | undefined;
  readonly world: World;
  readonly onStoreError: (error: unknown) => void;
}

/** One claimed task at work, until it has ended or is no longer ours. */
export class Execution {
  readonly task: TaskRecord;
  readonly token: CancellationToken;
  readonly #options: ExecutionOptions;
  readonly #history: readonly Json[];
  readonly #journal: Journal;
  readonly #lease: Lease;
  readonly #commandsSeen = new Set<number>();
  /** How far the store's clock is ahead of ours. */
  #aheadMs = 0;
  /** Messages given to the run that it has not read yet. */
  readonly #steers = new Map<UserMessage, number>();
  #run: Run | undefined;
  #stop: StopOrder | undefined;
  #lost: LeaseLostError | undefined;
  #commandsWaiting: NumberedCommand[] = [];

  constructor(claim: Claim & { answer: 'claimed' }, options: ExecutionOptions) {
    const { store, world, leaseMs, askedAt, flushMs, unwatchedFlushMs, onStoreError } = options;
    const { id, epoch, position, journalBytes } = claim.task;
    this.task = claim.task;
    this.#options = options;
    this.#history = claim.history;
    this.token = new CancellationToken({ name: `task ${id}`, clock: world.clock });
    const shared = {
      store,
      id,
      epoch,
      clock: world.clock,
      onStoreError,
      onOrders: (orders: Orders) => this.obey(orders),
      onLost: (error: LeaseLostError) => this.#lose(error),
    };
    const onFull = ({ message }: JournalFullError): void => this.cancel({ kind: 'budget', message }, 'now');
    this.#journal = new Journal({ ...shared, position, bytes: journalBytes, flushMs, unwatchedFlushMs, onFull });
    this.#lease = new Lease({ ...shared, leaseMs, askedAt, token: this.token });
    this.obey(claim.orders);
  }

  /** Works until the end. Rejects with `LeaseLostError`, and then nothing was published. */
  async live(): Promise<FinalStatus | 'released'> {
    try {
      const outcome = await this.#perform();
      if (this.token.reason?.kind === 'lease-lost')
        throw this.#lost ?? new LeaseLostError(this.task.id, this.task.epoch);
      await this.#journal.flush();
      return await this.#end(outcome);
    } finally {
      this.#lease[Symbol.dispose]();
      this.token[Symbol.dispose]();
      this.#journal.close(new LeaseLostError(this.task.id, this.task.epoch));
      this.#options.approvals?.forget(this.task.id);
    }
  }

  /** The store's time, as far as its last orders tell: clocks of machines differ. */
  storeNow(): number {
    return this.#options.world.clock.now() + this.#aheadMs;
  }

  /** Does what the store says. Orders are complete each time, so hearing them twice changes nothing. */
  obey({ now, stop, commands, watched }: Omit<Orders, 'leaseUntil'>): void {
    this.#aheadMs = now - this.#options.world.clock.now();
    this.#journal.watch(watched);
    if (stop !== undefined) this.stop(stop, now);
    for (const command of commands) {
      if (this.#commandsSeen.has(command.number)) continue;
      this.#commandsSeen.add(command.number);
      this.#carryOut(command);
    }
  }

  /** Stops as the store orders, at a moment of its clock. Hearing it twice changes nothing. */
  stop(order: StopOrder, now: number): void {
    if (this.#stop !== undefined && isSame(this.#stop, order)) return;
    this.#stop = order;
    this.token.cancel(order.reason, { how: ladderOf(order, now), undo: order.undo });
  }

  /** Stops the work now, whatever the store says or does not say. */
  cancel(reason: Partial<CancelReason>, how: StopHow): void {
    this.token.cancel(reason, { how });
  }

  #carryOut(command: NumberedCommand): void {
    const { approvals } = this.#options;
    if (command.type === 'approve') {
      approvals?.answer(this.task.id, command.callId, command.approved);
      this.#journal.done(command.number);
    } else if (this.#run === undefined) {
      this.#commandsWaiting.push(command);
    } else if (command.type === 'cancel-call') {
      const receipt = this.#run.cancelCall(command.callId, command.reason ?? { via: 'store' });
      this.#journal.add({ type: 'command-done', number: command.number, answer: receipt.answer });
      this.#journal.done(command.number);
    } else {
      const message = messageOf(command.message);
      this.#steers.set(message, command.number);
      this.#run.steer(message);
    }
  }

  #lose(error: LeaseLostError): void {
    this.#lost = error;
    this.#journal.close(error);
    this.token.cancel({ kind: 'lease-lost', message: error.message }, { how: { abortMs: 1_000 } });
  }

  async #perform(): Promise<TaskOutcome> {
    const { task, token } = this;
    const { work, approvals } = this.#options;
    const past = await readJournal(this.#options.store, task);
    if (task.status === 'cancelling') return this.#settle(past);
    if (!isAgent(work)) {
      const call = guard(
        (context) =>
          work(
            Object.assign(context, { task, history: this.#history, journal: (event: object) => this.#write(event) }),
          ),
        { name: task.agent, token },
      );
      return outcomeOfWork(call, token);
    }
    const perform = () =>
      runAgent({
        agent: work,
        task,
        history: this.#history,
        past,
        journal: this.#journal,
        world: this.#options.world,
        token,
        onRun: (run) => this.#begin(run),
        onEvent: (event) => this.#noticeSteer(event),
      });
    return approvals === undefined ? perform() : approvals.during(task.id, perform);
  }

  #begin(run: Run): void {
    this.#run = run;
    const commands = this.#commandsWaiting;
    this.#commandsWaiting = [];
    for (const command of commands) this.#carryOut(command);
  }

  #noticeSteer(event: { readonly type: string; readonly message?: unknown }): void {
    if (event.type !== 'steer-delivered') return;
    const number = this.#steers.get(event.message as UserMessage);
    if (number !== undefined) this.#journal.done(number);
  }

  async #write(event: object): Promise<void> {
    this.#journal.add(event);
    await this.#journal.flushWhole();
  }

  /** A task that was being cancelled when its worker was lost does not run again; it gets its end. */
  async #settle(past: readonly JournalEntry[]): Promise<TaskOutcome> {
    const { reason, undo } = this.task.stop!;
    const { work, world } = this.#options;
    const standing = standingOf(past);
    const undone =
      undo && isAgent(work)
        ? await undoLost(standing, { tools: work.tools, journal: this.#journal, token: this.token })
        : standing.undone;
    const settled = settle({ ...standing, undone }, { reason }, world.clock.now());
    const { answer, stop } = settled;
    const before = standing.isWhole ? [] : historyBefore(this.task, this.#history);
    const said = past.length === 0 ? {} : saidIn([...before, ...settled.messages], this.#history);
    return { status: 'cancelled', reason, complete: false, answer, stop, ...said };
  }

  /** Writes the end. A shutdown of this process is no end: the task is handed back. */
  async #end(outcome: TaskOutcome): Promise<FinalStatus | 'released'> {
    const { id, epoch } = this.task;
    const { store, leaseMs, world, onStoreError } = this.#options;
    const until = world.clock.now() + leaseMs;
    for (;;) {
      try {
        if (outcome.status === 'cancelled' && outcome.reason?.kind === 'shutdown' && this.#stop === undefined) {
          const { answer } = await store.release(id, epoch);
          if (answer !== 'sealed') return 'released';
        }
        return (await store.finish(id, epoch, outcome)).status;
      } catch (error) {
        if (error instanceof LeaseLostError) throw error;
        onStoreError(error);
        if (world.clock.now() >= until) throw new LeaseLostError(id, epoch, { cause: error });
      }
      await new Promise<void>((resolve) => world.clock.setTimer(RETRY_MS, resolve));
    }
  }
}

/** A stop order as a ladder from now on; the store's clock and ours may differ, its distances do not. */
function ladderOf({ level, abortAt, killAt }: StopOrder, now: number): StopHow {
  const drainMs = Math.max(0, abortAt - now);
  const abortMs = Math.max(0, killAt - Math.max(abortAt, now));
  if (level === 'kill' || now >= killAt) return 'kill';
  return level === 'abort' || drainMs === 0 ? { abortMs } : { drainMs, abortMs };
}

/** The reason is left out: a task has only one. */
function isSame(a: StopOrder, b: StopOrder): boolean {
  return a.level === b.level && a.abortAt === b.abortAt && a.killAt === b.killAt && a.undo === b.undo;
}

function messageOf(message: Json): UserMessage {
  const given = message as unknown as UserMessage;
  return typeof given === 'object' && 'role' in given ? given : { role: 'user', content: message as string };
}
