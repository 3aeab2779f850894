import { CancellationToken, createTeller, presetFrom, systemWorld, type World } from '@whoa/core';
import { LeaseLostError } from '../errors.ts';
import type { FinalStatus } from '../status.ts';
import { type NewTask, responseOf, type TaskRecord, type TaskRef, type TaskResponse } from '../task.ts';
import { Claims, type MadeClaim } from './claims.ts';
import { Ears } from './ears.ts';
import { Execution } from './execution.ts';
import { insist } from './insist.ts';
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
  readonly #ears: Ears;
  readonly #strangers: Strangers;
  readonly #claims: Claims;
  readonly #shutdown: CancellationToken;
  readonly #tell: (event: RunnerEvent) => void;
  #sweep: Disposable | undefined;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#world = options.world ?? systemWorld;
    this.worker = options.worker ?? `${process.pid}-${this.#world.createId()}`;
    this.#shutdown = new CancellationToken({ name: 'runner', clock: this.#world.clock });
    this.#claims = new Claims(this.#world.clock);
    this.#strangers = new Strangers(this.#world.clock);
    this.#tell = createTeller<RunnerEvent>(options.hooks);
    this.#ears = new Ears({
      ...options,
      worker: this.worker,
      pollMs: options.pollMs ?? POLL_MS,
      clock: this.#world.clock,
      live: this.#live,
      claims: this.#claims,
      tell: this.#tell,
      background: (work) => this.#background(work),
    });
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
      await this.#ears.open();
      await this.#claimAndRun(ref);
      return await this.#response(ref);
    } finally {
      cancels[Symbol.dispose]();
      own[Symbol.dispose]();
    }
  }

  async serve({ concurrency = 16 }: { concurrency?: number } = {}): Promise<void> {
    await this.#ears.open();
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
    this.#ears.stop();
    this.#sweep?.[Symbol.dispose]();
    for (const { token } of this.#live.values()) token.cancel({ kind: 'shutdown' }, { how: 'now' });
    this.#ears.news.tell();
    while (this.#ends.size > 0) await Promise.allSettled(this.#ends);
    await this.#ears[Symbol.asyncDispose]();
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
      const news = this.#ears.news.of(ref.id);
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

  #claim(id: string): Promise<MadeClaim> {
    const { store, leaseMs = LEASE_MS } = this.#options;
    return this.#claims.make(id, () => store.claim(id, this.worker, leaseMs));
  }

  async #execute(claim: MadeClaim & { answer: 'claimed' }): Promise<FinalStatus | 'released'> {
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
    if (claim.isOutdated) this.#ears.refreshSoon(id);
    this.#ears.pollSoon();
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
      if (this.#live.size === 0) this.#ears.stopPolling();
      this.#tell({ type: 'task-end', tenant, id, status });
    }
  }

  async #response(ref: TaskRef): Promise<TaskResponse> {
    const record = await this.#options.store.get(ref);
    if (record === undefined) throw new TypeError(`id: there is no task '${ref.id}' of this tenant`);
    return responseOf(record, await readJournal(this.#options.store, record));
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
