import type { CancelReasonInit, Clock } from '@whoa/core';
import type { Hint, TaskStore } from '../store.ts';
import { isWatched } from '../task.ts';
import { CANCEL_TOPIC, type CancelMessage, reasonOf, TASK_CATEGORY } from './channel.ts';
import type { Claims } from './claims.ts';
import type { Execution } from './execution.ts';
import { News } from './news.ts';
import type { RunnerEvent, RunnerOptions } from './runner.ts';

export interface EarsOptions extends Pick<RunnerOptions, 'channel' | 'cancellationChecker' | 'whenCheckerFails'> {
  readonly store: TaskStore;
  readonly worker: string;
  readonly pollMs: number;
  readonly clock: Clock;
  /** The tasks this worker runs, by id. */
  readonly live: ReadonlyMap<string, Execution>;
  /** The claims whose answers have not come yet. */
  readonly claims: Claims;
  readonly tell: (event: RunnerEvent) => void;
  /** Takes work that nobody waits for. */
  readonly background: (work: Promise<unknown>) => void;
}

/**
 * All the ways by which a worker hears that a task is to stop, or is told something else: the store's push, a poll, an
 * event channel, a checker. Any one of them suffices. (One more is built in: the orders that come back from every write.)
 */
export class Ears implements AsyncDisposable {
  /** Wakes whoever waits for something to happen to a task. */
  readonly news: News;
  readonly #options: EarsOptions;
  #listening: Promise<AsyncDisposable> | undefined;
  #channel: Disposable | undefined;
  #poll: Disposable | undefined;

  constructor(options: EarsOptions) {
    this.#options = options;
    this.news = new News(options.clock, options.pollMs);
    this.#channel = options.channel?.on(TASK_CATEGORY, CANCEL_TOPIC, (message) => this.#hear(message as CancelMessage));
  }

  /** Hears nothing new that would start work; what the store pushes still wakes those who wait. */
  stop(): void {
    this.#channel?.[Symbol.dispose]();
    this.stopPolling();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.#listening)?.[Symbol.asyncDispose]();
  }

  /** One watch for the whole worker, however many tasks it runs. */
  async open(): Promise<void> {
    this.#listening ??= this.#options.store.watch({ worker: this.#options.worker }, (hint) => {
      this.#heed(hint);
      this.news.tell(hint.type === 'resync' ? undefined : hint.id);
    });
    try {
      await this.#listening;
    } catch (error) {
      // Ask again next time: an outage at the start must not leave the worker deaf for good.
      this.#listening = undefined;
      throw error;
    }
  }

  /** Obeys an order that the store has vouched for; whatever else was told, the store is asked. */
  #heed(hint: Hint): void {
    const { live, claims } = this.#options;
    if (hint.type === 'resync') {
      claims.outdate();
      for (const id of live.keys()) this.refreshSoon(id);
    }
    if (hint.type !== 'cancel' && hint.type !== 'command') return;
    const { id, order } = hint;
    const execution = live.get(id);
    claims.outdate(id);
    // Don't obey an order to another claim: who held the task then is not who holds it now.
    if (order !== undefined && order.epoch === execution?.task.epoch) execution.stop(order.stop, execution.storeNow());
    else this.refreshSoon(id);
  }

  refreshSoon(id: string): void {
    const execution = this.#options.live.get(id);
    if (execution !== undefined) this.#options.background(this.#refresh(execution));
  }

  /** Asks the store what it has to say about a task. */
  async #refresh(execution: Execution): Promise<void> {
    const { id, tenant, epoch } = execution.task;
    const record = await this.#options.store.get({ tenant, id });
    if (record?.epoch !== epoch) return;
    const { stop, commands } = record;
    const now = execution.storeNow();
    const watched = isWatched(record, now);
    execution.obey({ now, commands, watched, ...(stop !== undefined && { stop }) });
  }

  pollSoon(): void {
    this.#poll ??= this.#options.clock.setTimer(this.#options.pollMs, () => {
      this.#poll = undefined;
      for (const execution of this.#options.live.values()) {
        this.#options.background(this.#refresh(execution));
        this.#options.background(this.#check(execution));
      }
      this.pollSoon();
    });
  }

  stopPolling(): void {
    this.#poll?.[Symbol.dispose]();
    this.#poll = undefined;
  }

  async #check(execution: Execution): Promise<void> {
    const { cancellationChecker, whenCheckerFails = 'ignore' } = this.#options;
    if (cancellationChecker === undefined || execution.token.isCancelled) return;
    const { id } = execution.task;
    try {
      if (await cancellationChecker(id)) await this.#cancel(execution, { kind: 'user', via: 'checker' });
    } catch (error) {
      this.#options.tell({ type: 'checker-error', id, error });
      if (whenCheckerFails === 'cancel') {
        await this.#cancel(execution, { kind: 'user', via: 'checker', message: 'the cancellation checker failed' });
      }
    }
  }

  #hear({ taskId, payload }: CancelMessage): void {
    const reason = reasonOf(payload);
    for (const [id, execution] of this.#options.live) {
      if (taskId === undefined || taskId === id) this.#options.background(this.#cancel(execution, reason));
    }
  }

  /** The store first, so that everybody agrees; if it cannot be reached the work stops all the same. */
  async #cancel(execution: Execution, reason: CancelReasonInit): Promise<void> {
    const { id, tenant } = execution.task;
    try {
      await this.#options.store.cancel({ tenant, id }, reason);
      await this.#refresh(execution);
    } catch (error) {
      this.#options.tell({ type: 'store-error', error });
      execution.cancel(reason, 'graceful');
    }
  }
}
