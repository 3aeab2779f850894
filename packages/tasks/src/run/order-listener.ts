import type { CancelReasonInit } from '@whoa/core';
import type { CancelOptions } from '@whoa/core/embed';
import { TaskWakeups } from '../delivery/task-wakeups.ts';
import type { WorkerContext } from '../delivery/worker-context.ts';
import type { WorkerSession } from '../delivery/worker-session.ts';
import type { ClaimRef } from '../delivery/worker-store.ts';
import type { Hint, PushedOrder } from '../store.ts';
import type { ConversationRef, TaskRef, TaskSummary } from '../task.ts';
import {
  CANCEL_TOPIC,
  type CancelRequest,
  type CancelTarget,
  type EventChannel,
  readCancelMessage,
  TASK_CATEGORY,
} from './channel.ts';
import { Checker } from './checker.ts';
import type { Execution } from './execution.ts';
import type { RunnerOptions } from './runner.ts';

export interface ListenerOptions extends Pick<RunnerOptions, 'channel' | 'cancellationChecker' | 'cancellations'> {
  readonly session: WorkerSession;
  /** The tasks this worker runs, by id. */
  readonly live: ReadonlyMap<string, Execution>;
  /** The tasks this worker runs or waits for. */
  readonly tasks: () => readonly TaskRef[];
  /** A task became ready, or may have. */
  readonly onWork: () => void;
}

/**
 * The ways in which a worker learns that a task must stop or has a command: the store's push, an event channel, a
 * checker. Any one of them is enough. Two more are built in: the orders that every write and every beat return.
 */
export class OrderListener implements AsyncDisposable {
  /** Wakes waiters when something happens to a task. */
  readonly wakeups: TaskWakeups;
  readonly checker: Checker;
  readonly #context: WorkerContext;
  readonly #options: ListenerOptions;
  readonly #channels = new Set<Disposable>();
  #listening: Promise<AsyncDisposable> | undefined;
  #poll: Disposable | undefined;

  constructor(context: WorkerContext, options: ListenerOptions) {
    this.#context = context;
    this.#options = options;
    this.wakeups = new TaskWakeups(context);
    this.checker = new Checker(context, options);
    const heard = this.checker.listen((taskId) => this.#lookUp(taskId));
    if (heard !== undefined) this.#channels.add(heard);
    if (options.channel !== undefined) this.listen(options.channel);
  }

  /** Obeys the cancel messages of a channel until disposed. */
  listen(channel: EventChannel): Disposable {
    const listening = channel.on(TASK_CATEGORY, CANCEL_TOPIC, (message) =>
      this.#handleCancel(readCancelMessage(message)),
    );
    this.#channels.add(listening);
    return {
      [Symbol.dispose]: () => {
        this.#channels.delete(listening);
        listening[Symbol.dispose]();
      },
    };
  }

  /** Ignores anything that would start new work. Hints of the store still wake waiters. */
  stop(): void {
    for (const listening of this.#channels) listening[Symbol.dispose]();
    this.#channels.clear();
    this.stopPolling();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.#listening)?.[Symbol.asyncDispose]();
  }

  /** Opens one watch for the whole worker, no matter how many tasks it runs. */
  async open(): Promise<void> {
    const { store, worker } = this.#context;
    this.#listening ??= store.watch({ worker }, (hint) => {
      this.#handleHint(hint);
      this.wakeups.wake('id' in hint ? hint.id : undefined);
    });
    try {
      await this.#listening;
    } catch (error) {
      // Try again next time: an outage at the start must not leave the worker without hints for ever.
      this.#listening = undefined;
      throw error;
    }
  }

  /** Obeys an order that the store has signed. For any other hint, beats now: the beat returns the orders. */
  #handleHint(hint: Hint): void {
    const { live, session, onWork } = this.#options;
    if (hint.type === 'resync') {
      session.current.scheduleHeartbeat();
      onWork();
    }
    if (hint.type === 'ready') onWork();
    if (hint.type === 'watched') live.get(hint.id)?.holder.journal.watch(hint.reader);
    if (hint.type !== 'cancel' && hint.type !== 'command') return;
    const { id, order } = hint;
    const holder = live.get(id)?.holder;
    // Don't obey an order for another claim: another session may have held the task then.
    const isForUs = order !== undefined && holder !== undefined && isSameClaim(order, holder.claim);
    if (isForUs) holder.stop(order.stop);
    else session.current.scheduleHeartbeat();
  }

  schedulePoll(): void {
    const { world, pollIntervalMs } = this.#context;
    this.#poll ??= world.clock.setTimer(pollIntervalMs, () => {
      this.#poll = undefined;
      for (const execution of this.#options.live.values()) {
        if (this.checker.isIdle(execution.task.id)) this.#context.background(this.check(execution));
      }
      this.schedulePoll();
    });
  }

  stopPolling(): void {
    this.#poll?.[Symbol.dispose]();
    this.#poll = undefined;
  }

  /** A cancel was asked for in the cancellation store. */
  #lookUp(taskId: string): void {
    const execution = this.#options.live.get(taskId);
    if (execution !== undefined) this.#context.background(this.check(execution));
  }

  /** Calls the checker for a task, and stops the task if the checker returns a reason. */
  async check(execution: Execution): Promise<void> {
    const { task, holder } = execution;
    const reason = await this.checker.ask(task, holder.token);
    if (reason === undefined) return;
    const { id, tenant } = task;
    await this.#cancel({ tenant, id }, reason, { mode: 'now' });
  }

  #handleCancel({ target, reason, options }: CancelRequest): void {
    for (const ref of this.#toRefs(target)) this.#context.background(this.#cancel(ref, reason, options));
  }

  #toRefs(target: CancelTarget): readonly (TaskRef | ConversationRef)[] {
    const { tenant } = target;
    if ('taskId' in target) return [{ tenant, id: target.taskId }];
    if ('conversation' in target) return [{ tenant, conversation: target.conversation }];
    return this.#options.tasks().filter((ref) => ref.tenant === tenant);
  }

  /** Cancels in the store first, so that all processes agree. If it is unreachable, the work stops all the same. */
  async #cancel(ref: TaskRef | ConversationRef, reason: CancelReasonInit, options: CancelOptions): Promise<void> {
    const { live } = this.#options;
    const meant = [...live.values()].filter(({ task }) => isMeant(task, ref));
    try {
      await this.#context.store.cancel(ref, reason, options);
      const meantSessions = new Set(meant.map(({ holder }) => holder.session));
      await Promise.all([...meantSessions].map((session) => session.heartbeat()));
    } catch (error) {
      this.#context.onStoreError(error);
      for (const { holder } of meant) holder.cancel(reason, options);
    }
  }
}

function isSameClaim({ epoch, claim }: PushedOrder, held: ClaimRef): boolean {
  return epoch === held.epoch && claim === held.claim;
}

function isMeant({ tenant, id, conversation }: TaskSummary, ref: TaskRef | ConversationRef): boolean {
  return tenant === ref.tenant && ('id' in ref ? id === ref.id : conversation === ref.conversation);
}
