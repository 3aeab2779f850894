import {
  CancellationToken,
  type CancelReasonInit,
  createTeller,
  presetFrom,
  systemWorld,
  type World,
} from '@whoa/core';
import { LeaseLostError } from '../errors.ts';
import type { FinalStatus } from '../status.ts';
import type { Claim, PushedOrder } from '../store.ts';
import { isWatched, type NewTask, responseOf, type TaskRecord, type TaskRef, type TaskResponse } from '../task.ts';
import { CANCEL_TOPIC, type CancelMessage, reasonOf, TASK_CATEGORY } from './channel.ts';
import { Execution } from './execution.ts';
import { insist } from './insist.ts';
import { News } from './news.ts';
import { readJournal } from './read-journal.ts';
import { type Runner, type RunnerEvent, type RunnerOptions, TaskRejectedError, type WorkOptions } from './runner.ts';
import { Strangers, takeDue } from './strangers.ts';
import type { Work } from './work.ts';

const LEASE_MS = 15_000;
const POLL_MS = 1_000;
const FLUSH_MS = 200;
const UNWATCHED_FLUSH_MS = 5_000;

/** Creates a runner. */
export function createRunner(options: RunnerOptions): Runner {
  return new StoreRunner(options);
}

class StoreRunner implements Runner {
  readonly worker: string;
  readonly #options: RunnerOptions;
  readonly #world: World;
  readonly #live = new Map<string, Execution>();
  readonly #ends = new Set<Promise<unknown>>();
  readonly #news: News;
  readonly #strangers: Strangers;
  readonly #shutdown: CancellationToken;
  readonly #tell: (event: RunnerEvent) => void;
  #listening: Promise<AsyncDisposable> | undefined;
  #channel: Disposable | undefined;
  #poll: Disposable | undefined;
  #sweep: Disposable | undefined;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#world = options.world ?? systemWorld;
    this.worker = options.worker ?? `${process.pid}-${this.#world.createId()}`;
    this.#shutdown = new CancellationToken({ name: 'runner', clock: this.#world.clock });
    this.#news = new News(this.#world.clock, options.pollMs ?? POLL_MS);
    this.#strangers = new Strangers(this.#world.clock);
    this.#tell = createTeller<RunnerEvent>(options.hooks);
    this.#channel = options.channel?.on(TASK_CATEGORY, CANCEL_TOPIC, (message) => this.#hear(message as CancelMessage));
  }

  get live(): number {
    return this.#live.size;
  }

  async run(task: NewTask, { policy, ...options }: WorkOptions = {}): Promise<TaskResponse> {
    const wanted = { worker: this.worker, ...task };
    const asked = { nonce: this.#world.createId(), ...(policy !== undefined && { policy }) };
    const receipt = await this.#insist(() => this.#options.store.create(wanted, asked));
    if (receipt.answer === 'rejected') throw new TaskRejectedError();
    return this.work({ tenant: task.tenant, id: receipt.task.id }, options);
  }

  async work(ref: TaskRef, { token, signal }: Omit<WorkOptions, 'policy'> = {}): Promise<TaskResponse> {
    const own =
      signal === undefined
        ? new CancellationToken({ parent: token })
        : CancellationToken.from(signal, { parent: token });
    const cancels = own.onCancel((level, reason) => {
      this.#background(this.#options.store.cancel(ref, reason, { how: presetFrom(level) }));
    });
    try {
      await this.#listen();
      await this.#claimAndRun(ref);
      return await this.#response(ref);
    } finally {
      cancels[Symbol.dispose]();
      own[Symbol.dispose]();
    }
  }

  async serve({ concurrency = 16 }: { concurrency?: number } = {}): Promise<void> {
    await this.#listen();
    const sweep = async (): Promise<void> => {
      try {
        await takeDue(this.#strangers, {
          store: this.#options.store,
          free: () => concurrency - this.#live.size,
          take: (id) => this.#takeOne(id),
        });
      } catch (error) {
        this.#tell({ type: 'store-error', error });
      }
      if (this.#shutdown.isCancelled) return;
      this.#sweep = this.#world.clock.setTimer(this.#options.pollMs ?? POLL_MS, () => this.#background(sweep()), {
        keepAlive: true,
      });
    };
    await sweep();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#shutdown.cancel({ kind: 'shutdown' });
    this.#channel?.[Symbol.dispose]();
    this.#stopPolling();
    this.#sweep?.[Symbol.dispose]();
    for (const { token } of this.#live.values()) token.cancel({ kind: 'shutdown' }, { how: 'now' });
    this.#news.tell();
    while (this.#ends.size > 0) await Promise.allSettled(this.#ends);
    await (await this.#listening)?.[Symbol.asyncDispose]();
    this.#shutdown[Symbol.dispose]();
  }

  /** Takes a task if nobody else has; false if this worker has no such agent, and handed it back. */
  async #takeOne(id: string): Promise<boolean> {
    const claim = await this.#claim(id);
    if (claim.answer !== 'claimed') return true;
    const isOurs = this.#workFor(claim.task) !== undefined;
    if (isOurs) this.#background(this.#execute(claim));
    else await this.#options.store.release(id, claim.task.epoch);
    return isOurs;
  }

  /** What runs a task. One that is only to be settled needs no agent, unless something is to be undone. */
  #workFor({ agent, status, stop }: TaskRecord): Work | undefined {
    const { agents } = this.#options;
    // A task's words may come from anywhere: 'constructor' is no agent.
    if (Object.hasOwn(agents, agent)) return agents[agent];
    return status === 'cancelling' && stop?.undo === false ? () => Promise.resolve(undefined) : undefined;
  }

  /** Tries until the task is ours and done, or has ended elsewhere. */
  async #claimAndRun(ref: TaskRef): Promise<void> {
    for (;;) {
      this.#shutdown.throwIfCancelled();
      // Listen before asking: news that comes in between wakes us.
      const news = this.#news.of(ref.id);
      try {
        const claim = await this.#insist(() => this.#claim(ref.id));
        if (claim.answer === 'unknown') throw new TypeError(`id: there is no task '${ref.id}' to work on`);
        if (claim.answer === 'too-late') return;
        if (claim.answer === 'claimed') {
          if ((await this.#execute(claim)) !== 'released') return;
          this.#shutdown.throwIfCancelled();
          continue;
        }
        await news.wait(claim.until === undefined ? undefined : claim.until - this.#world.clock.now());
      } finally {
        news[Symbol.dispose]();
      }
    }
  }

  #insist<T>(ask: () => Promise<T>): Promise<T> {
    const onStoreError = (error: unknown): void => this.#tell({ type: 'store-error', error });
    return insist(ask, { clock: this.#world.clock, onStoreError });
  }

  async #claim(id: string): Promise<Claim & { askedAt: number }> {
    const askedAt = this.#world.clock.now();
    return { ...(await this.#options.store.claim(id, this.worker, this.#options.leaseMs ?? LEASE_MS)), askedAt };
  }

  async #execute(claim: Claim & { answer: 'claimed'; askedAt: number }): Promise<FinalStatus | 'released'> {
    const { store, agents, approvals, leaseMs = LEASE_MS } = this.#options;
    const { flushMs = FLUSH_MS, unwatchedFlushMs = UNWATCHED_FLUSH_MS } = this.#options;
    const { id, tenant, epoch, agent } = claim.task;
    const work = this.#workFor(claim.task);
    if (work === undefined) {
      await store.release(id, epoch);
      throw new TypeError(`agent: this runner has no '${agent}', only ${Object.keys(agents).join(', ')}`);
    }
    const onStoreError = (error: unknown): void => this.#tell({ type: 'store-error', error });
    const execution = new Execution(claim, {
      store,
      work,
      leaseMs,
      askedAt: claim.askedAt,
      flushMs,
      unwatchedFlushMs,
      approvals,
      world: this.#world,
      onStoreError,
    });
    this.#live.set(id, execution);
    this.#pollSoon();
    this.#tell({ type: 'task-start', tenant, id, epoch });
    if (this.#shutdown.isCancelled) execution.cancel({ kind: 'shutdown' }, 'now');
    const living = execution.live();
    this.#ends.add(living);
    let status: FinalStatus | 'released' | 'lost' = 'lost';
    try {
      return (status = await living);
    } finally {
      this.#ends.delete(living);
      if (this.#live.get(id) === execution) this.#live.delete(id);
      if (this.#live.size === 0) this.#stopPolling();
      this.#tell({ type: 'task-end', tenant, id, status });
    }
  }

  async #response(ref: TaskRef): Promise<TaskResponse> {
    const record = await this.#options.store.get(ref);
    if (record === undefined) throw new TypeError(`id: there is no task '${ref.id}' of this tenant`);
    return responseOf(record, await readJournal(this.#options.store, record));
  }

  /** One watch for the whole worker, however many tasks it runs. */
  async #listen(): Promise<void> {
    this.#listening ??= this.#options.store.watch({ worker: this.worker }, (hint) => {
      if (hint.type === 'cancel' || hint.type === 'command') this.#heed(hint.id, hint.order);
      if (hint.type === 'resync') for (const id of this.#live.keys()) this.#refreshSoon(id);
      this.#news.tell(hint.type === 'resync' ? undefined : hint.id);
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
  #heed(id: string, order: PushedOrder | undefined): void {
    const execution = this.#live.get(id);
    // Don't obey an order to another claim: who held the task then is not who holds it now.
    if (order !== undefined && order.epoch === execution?.task.epoch) execution.stop(order.stop, execution.storeNow());
    else this.#refreshSoon(id);
  }

  #refreshSoon(id: string): void {
    const execution = this.#live.get(id);
    if (execution !== undefined) this.#background(this.#refresh(execution));
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

  #pollSoon(): void {
    this.#poll ??= this.#world.clock.setTimer(this.#options.pollMs ?? POLL_MS, () => {
      this.#poll = undefined;
      for (const execution of this.#live.values()) {
        this.#background(this.#refresh(execution));
        this.#background(this.#check(execution));
      }
      this.#pollSoon();
    });
  }

  #stopPolling(): void {
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
      this.#tell({ type: 'checker-error', id, error });
      if (whenCheckerFails === 'cancel') {
        await this.#cancel(execution, { kind: 'user', via: 'checker', message: 'the cancellation checker failed' });
      }
    }
  }

  #hear({ taskId, payload }: CancelMessage): void {
    const reason = reasonOf(payload);
    for (const [id, execution] of this.#live) {
      if (taskId === undefined || taskId === id) this.#background(this.#cancel(execution, reason));
    }
  }

  /** The store first, so that everybody agrees; if it cannot be reached the work stops all the same. */
  async #cancel(execution: Execution, reason: CancelReasonInit): Promise<void> {
    const { id, tenant } = execution.task;
    try {
      await this.#options.store.cancel({ tenant, id }, reason);
      await this.#refresh(execution);
    } catch (error) {
      this.#tell({ type: 'store-error', error });
      execution.cancel(reason, 'graceful');
    }
  }

  /** Work nobody waits for. What goes wrong is told, not lost; a lost lease has been told as the end of its task. */
  #background(work: Promise<unknown>): void {
    const kept = work.catch((error: unknown) => {
      if (!(error instanceof LeaseLostError)) this.#tell({ type: 'store-error', error });
    });
    this.#ends.add(kept);
    kept.finally(() => this.#ends.delete(kept)).catch(() => {});
  }
}
