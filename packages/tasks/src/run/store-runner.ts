import { CancellationToken, type Run, type RunEvent, type StopMode } from '@whoa/core';
import { systemWorld, type World } from '@whoa/core/embed';
import { createHookDispatcher, createListener, settings, toPreset } from '@whoa/core/internal';
import type { TakenTask } from '../delivery.ts';
import { LeaseLostError } from '../errors.ts';
import { getShardOrFirst } from '../id.ts';
import type { FinalStatus } from '../status.ts';
import { type NewTask, type TaskRef, type TaskResponse, toTaskResponse } from '../task.ts';
import { AdoptedRun, type AdoptOptions } from './adopted-run.ts';
import { withBackground } from './background.ts';
import { askAgain } from './claim/ask-again.ts';
import type { EventChannel } from './claim/channel.ts';
import type { CancellationChecker } from './claim/checker.ts';
import { DomainSession } from './claim/domain-session.ts';
import { HandBack, type HandBackOptions } from './claim/hand-back.ts';
import { OrderListener } from './claim/order-listener.ts';
import { Sweeper } from './claim/sweeper.ts';
import { TakeLoop } from './claim/take-loop.ts';
import { Execution } from './execution.ts';
import { readJournal } from './journal/read-journal.ts';
import {
  type AdoptedTask,
  letIn,
  type Runner,
  type RunnerEvent,
  type RunnerOptions,
  type ServeOptions,
  type StartedTask,
  type WorkOptions,
} from './runner.ts';
import { RUNNER_DEFAULTS, RUNNER_RULES, SERVE_RULES, WORK_RULES } from './runner-rules.ts';
import { findWork } from './work.ts';

/** How a claimed task is run here. */
interface RunHere {
  readonly onEvent?: ((event: RunEvent) => void) | undefined;
  readonly adopted?: AdoptedRun | undefined;
}
type ExistingOptions = Omit<WorkOptions, 'policy'>;

/**
 * Creates a runner: it runs tasks in this process, by itself or for your own queue.
 *
 * @returns The runner. Dispose it to hand back unfinished tasks.
 * @throws {@link SettingsError} when an option is invalid.
 *
 * @example
 * ```ts
 * import { createRunner } from '@whoa/tasks';
 * await using runner = createRunner({ store, agents: { assistant: agent } });
 * const response = await runner.run({ tenant: 'acme', agent: 'assistant', input: 'Tell me a story' });
 * console.log(response.status, response.answer);
 * ```
 */
export function createRunner(options: RunnerOptions): Runner {
  return new StoreRunner(withBackground(settings.readSettings<RunnerOptions>(options, RUNNER_RULES)));
}

class StoreRunner implements Runner {
  readonly worker: string;
  readonly #options: RunnerOptions & typeof RUNNER_DEFAULTS;
  /** The tasks that `work` was called for. */
  readonly #asked = new Set<TaskRef>();
  readonly #world: World;
  readonly #live = new Map<string, Execution>();
  readonly #ends = new Set<Promise<unknown>>();
  readonly #sessions: readonly DomainSession[];
  readonly #orders: OrderListener;
  readonly #shutdown: CancellationToken;
  readonly #tell: (event: RunnerEvent) => void;
  /** What most parts of this runner need. */
  readonly #shared: Pick<HandBackOptions, 'clock' | 'onStoreError' | 'background'>;
  readonly #sweeper: Sweeper;
  readonly #handBack: HandBack;
  #takes: TakeLoop | undefined;
  #stopped: Promise<void> | undefined;

  constructor(options: RunnerOptions) {
    this.#options = { ...RUNNER_DEFAULTS, ...options };
    this.#world = options.world ?? systemWorld;
    this.worker = options.worker ?? `${process.pid}-${this.#world.createId()}`;
    this.#shutdown = new CancellationToken({ name: 'runner', clock: this.#world.clock });
    this.#tell = createHookDispatcher<RunnerEvent>(options.hooks);
    this.#shared = {
      clock: this.#world.clock,
      onStoreError: (error) => this.#tell({ type: 'store-error', error }),
      background: (work) => this.#background(work),
    };
    this.#sweeper = new Sweeper({
      store: options.store,
      isOver: () => this.#shutdown.isCancelled,
      onFreed: (domain) => this.#takes?.wake(domain),
    });
    this.#handBack = new HandBack({ ...this.#options, ...this.#shared, shutdown: this.#shutdown });
    this.#sessions = Array.from({ length: options.store.domains }, (_, domain) => this.#sessionIn(domain));
    this.#orders = new OrderListener({
      ...this.#options,
      ...this.#shared,
      worker: this.worker,
      sessions: this.#sessions,
      live: this.#live,
      tasks: () => [...this.#asked, ...[...this.#live.values()].map(({ task }) => task)],
      tell: this.#tell,
      onWork: (domain) => this.#takes?.wake(domain),
    });
  }

  get live(): number {
    return this.#live.size;
  }

  async run(task: NewTask, options?: WorkOptions): Promise<TaskResponse> {
    return this.work(...(await this.#create(task, options)));
  }

  async start(task: NewTask, options?: WorkOptions): Promise<StartedTask> {
    const [ref, rest] = await this.#create(task, options);
    const response = this.work(ref, rest);
    // Don't await this: callers that follow the task need not wait for its end.
    this.#background(response);
    return { ...ref, response };
  }

  adopt(task: NewTask, start: (options: AdoptOptions) => Run, options: WorkOptions = {}): AdoptedTask {
    const adopted = new AdoptedRun(start);
    const response = this.#create(task, options)
      .then(([ref, rest]) => this.work(ref, { ...rest, wait: false }, adopted))
      .catch((error: unknown) => adopted.fail(error));
    this.#background(response);
    return { run: adopted.adopted, response };
  }

  async #create(task: NewTask, given: WorkOptions = {}): Promise<[TaskRef, ExistingOptions]> {
    const { policy, ...options } = settings.readSettings<WorkOptions>(given, WORK_RULES);
    const asked = { nonce: this.#world.createId(), ...(policy !== undefined && { policy }) };
    const create = () => this.#options.store.create({ worker: this.worker, ...task }, asked);
    const id = letIn(await this.#askAgain(create));
    return [{ tenant: task.tenant, id }, options];
  }

  async work(ref: TaskRef, options: ExistingOptions = {}, adopted?: AdoptedRun): Promise<TaskResponse> {
    const { token, signal, onEvent, wait = true } = options;
    const parent = { parent: token };
    const own = signal ? CancellationToken.from(signal, parent) : new CancellationToken(parent);
    const cancels = own.onCancel((level, reason) => {
      this.#background(this.#options.store.cancel(ref, reason, { mode: toPreset(level) }));
    });
    this.#asked.add(ref);
    try {
      await this.#orders.open();
      const listener = onEvent && createListener('onEvent', onEvent, this.#options.hooks);
      await this.#claimAndRun(ref, { wait, onEvent: listener, adopted });
      const record = await this.#options.store.get(ref);
      if (record === undefined) throw new TypeError(`id: there is no task '${ref.id}' of this tenant`);
      adopted?.finish(record);
      return toTaskResponse(record, await readJournal(this.#options.store, record));
    } finally {
      this.#asked.delete(ref);
      cancels[Symbol.dispose]();
      own[Symbol.dispose]();
    }
  }

  async serve(given: ServeOptions = {}): Promise<void> {
    const { concurrency = 16, agents } = settings.readSettings<ServeOptions>(given, SERVE_RULES);
    await this.#orders.open();
    this.#shutdown.throwIfCancelled();
    this.#takes?.[Symbol.dispose]();
    this.#takes = new TakeLoop({
      ...this.#shared,
      sessions: this.#sessions,
      agents: agents ?? Object.keys(this.#options.agents),
      concurrency,
      live: () => this.#live.size - (this.#options.background?.live ?? 0),
      pollMs: this.#options.pollMs,
      onTaken: (taken) => this.#background(this.#execute(taken)),
      onExpired: (domain) => this.#background(this.#sweeper.sweep(domain, true)),
    });
    this.#takes.pump();
  }

  setCancellationChecker(checker: CancellationChecker | undefined): void {
    this.#orders.checker.set(checker);
  }

  listen(channel: EventChannel): Disposable {
    return this.#orders.listen(channel);
  }

  stop(mode: StopMode = 'graceful'): Promise<void> {
    this.#shutdown.cancel({ kind: 'shutdown' }, { mode });
    this.#orders.stop();
    this.#takes?.[Symbol.dispose]();
    for (const { token } of this.#live.values()) token.cancel({ kind: 'shutdown' }, { mode });
    this.#orders.wakeups.wake();
    return (this.#stopped ??= this.#leave());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop('now');
  }

  async #leave(): Promise<void> {
    while (this.#ends.size > 0) await Promise.allSettled(this.#ends);
    for (const session of this.#sessions) session.stop();
    this.#handBack[Symbol.dispose]();
    await this.#orders[Symbol.asyncDispose]();
    this.#shutdown[Symbol.dispose]();
  }

  #sessionIn(domain: number): DomainSession {
    return new DomainSession({
      ...this.#options,
      ...this.#shared,
      domain,
      worker: this.worker,
      world: this.#world,
      handBack: this.#handBack,
      onExpired: (one) => this.#background(this.#sweeper.sweep(one, true)),
    });
  }

  /** Retries until the task has run here or has ended elsewhere. */
  async #claimAndRun(ref: TaskRef, { wait, ...options }: RunHere & { readonly wait: boolean }): Promise<void> {
    for (;;) {
      this.#shutdown.throwIfCancelled();
      // Listen before the claim: a change in between must wake us.
      const wakeups = this.#orders.wakeups.listen(ref.id);
      try {
        const claim = await this.#session(ref.id).claim(ref.id, (ask) => this.#askAgain(ask));
        if (claim.answer === 'unknown') throw new TypeError(`id: there is no task '${ref.id}' to work on`);
        if (claim.answer === 'too-late') return;
        if (claim.answer === 'claimed') {
          if ((await this.#execute(claim, options)) !== 'released') return;
          this.#shutdown.throwIfCancelled();
          continue;
        }
        if (claim.answer === 'gone') continue;
        if (claim.answer === 'held') await this.#sweeper.sweep(getShardOrFirst(ref.id) % this.#sessions.length);
        if (!wait) return;
        await wakeups.wait(claim.until === undefined ? undefined : claim.until - this.#world.clock.now());
      } finally {
        wakeups[Symbol.dispose]();
      }
    }
  }

  #askAgain<T>(ask: () => Promise<T>): Promise<T> {
    return askAgain(ask, this.#shared);
  }

  #session(id: string): DomainSession {
    return this.#sessions[getShardOrFirst(id) % this.#sessions.length]!;
  }

  async #execute(taken: TakenTask, { onEvent, adopted }: RunHere = {}): Promise<FinalStatus | 'released'> {
    const { store, agents, background } = this.#options;
    const { id, tenant, epoch, agent, conversation } = taken.task;
    const work = adopted ?? findWork(agents, taken.task);
    if (work === undefined) {
      this.#handBack.claim(taken.claim);
      throw new TypeError(`agent: this runner has no '${agent}', only ${Object.keys(agents).join(', ')}`);
    }
    const execution = new Execution(taken, {
      ...this.#options,
      ...this.#shared,
      work,
      session: this.#session(id),
      world: this.#world,
      check: (checked) => this.#orders.check(checked),
      onEvent,
      onUnfinished: (claim) => this.#handBack.claim(claim),
    });
    this.#live.set(id, execution);
    this.#orders.pollSoon();
    this.#tell({ type: 'task-start', tenant, id, epoch, ...(conversation !== undefined && { conversation }) });
    if (this.#shutdown.isCancelled) execution.cancel({ kind: 'shutdown' }, { mode: 'now' });
    const living = background?.during({ ...taken, store, runner: this }, () => execution.live()) ?? execution.live();
    this.#ends.add(living);
    let status: FinalStatus | 'released' | 'lost' = 'lost';
    try {
      return (status = await living);
    } finally {
      this.#ends.delete(living);
      if (this.#live.get(id) === execution) this.#live.delete(id);
      if (this.#live.size === 0) this.#orders.stopPolling();
      this.#tell({ type: 'task-end', tenant, id, status });
      this.#takes?.pumpSoon();
    }
  }

  /** Runs work that no caller awaits. Reports its errors, except a lost lease: that is reported as the task's end. */
  #background(work: Promise<unknown>): void {
    const kept = work.catch((error: unknown) => {
      if (!(error instanceof LeaseLostError)) this.#tell({ type: 'store-error', error });
    });
    this.#ends.add(kept);
    kept.finally(() => this.#ends.delete(kept)).catch(() => {});
  }
}
