import { CancellationToken, type Run, type RunEvent, SettingsError, type StopMode } from '@whoa/core';
import { createListener, settings, toPreset } from '@whoa/core/internal';
import { HandBack } from '../delivery/hand-back.ts';
import { retryLostResponse } from '../delivery/retry-lost-response.ts';
import { Sweeper } from '../delivery/sweeper.ts';
import { TakeLoop } from '../delivery/take-loop.ts';
import { type RunnerEvent, WorkerContext } from '../delivery/worker-context.ts';
import { WorkerSession } from '../delivery/worker-session.ts';
import type { TakenTask } from '../delivery/worker-store.ts';
import { type NewTask, type TaskRef, type TaskResponse, toTaskResponse } from '../task.ts';
import { AdoptedRun, type AdoptOptions, PAUSED } from './adopted-run.ts';
import { withBackground } from './background.ts';
import type { EventChannel } from './channel.ts';
import { Execution, type ExecutionEnd } from './execution.ts';
import { readJournal } from './journal/read-journal.ts';
import { OrderListener } from './order-listener.ts';
import {
  type AdoptedTask,
  type CancellationChecker,
  type Runner,
  type RunnerOptions,
  type RunTaskOptions,
  requireCreated,
  type ServeOptions,
  type StartedTask,
} from './runner.ts';
import { RUNNER_RULES, SERVE_RULES, WORK_RULES } from './runner-rules.ts';
import { findWork } from './work.ts';

/** How a claimed task is run here. */
interface RunHere {
  readonly onEvent?: ((event: RunEvent) => void) | undefined;
  readonly adopted?: AdoptedRun | undefined;
}
type ExistingOptions = Omit<RunTaskOptions, 'policy'>;

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
  readonly #options: RunnerOptions;
  readonly #context: WorkerContext;
  /** The tasks that `work` was called for. */
  readonly #asked = new Set<TaskRef>();
  readonly #live = new Map<string, Execution>();
  readonly #session: WorkerSession;
  readonly #orders: OrderListener;
  readonly #sweeper: Sweeper;
  readonly #handBack: HandBack;
  #takes: TakeLoop | undefined;
  #stopped: Promise<void> | undefined;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#context = new WorkerContext(options);
    this.#sweeper = new Sweeper(this.#context, () => this.#takes?.wake());
    this.#handBack = new HandBack(this.#context);
    this.#session = new WorkerSession(this.#context, { handBack: this.#handBack, sweeper: this.#sweeper });
    this.#orders = new OrderListener(this.#context, {
      ...options,
      session: this.#session,
      live: this.#live,
      tasks: () => [...this.#asked, ...[...this.#live.values()].map(({ task }) => task)],
      onWork: () => this.#takes?.wake(),
    });
  }

  get worker(): string {
    return this.#context.worker;
  }

  get live(): number {
    return this.#live.size;
  }

  async run(task: NewTask, options?: RunTaskOptions): Promise<TaskResponse> {
    return this.runExisting(...(await this.#create(task, options)));
  }

  async start(task: NewTask, options?: RunTaskOptions): Promise<StartedTask> {
    const [ref, rest] = await this.#create(task, options);
    const response = this.runExisting(ref, rest);
    // Don't await this: callers that follow the task need not wait for its end.
    this.#context.background(response);
    return { ...ref, response };
  }

  adopt(task: NewTask, start: (options: AdoptOptions) => Run, options: RunTaskOptions = {}): AdoptedTask {
    const adopted = new AdoptedRun(start);
    const response = this.#create(task, options)
      .then(async ([ref, rest]) => {
        const ended = await this.runExisting(ref, { ...rest, wait: false }, adopted);
        // The run is stopped, and no other worker may start its task.
        if (ended.status === 'init') await this.#options.store.cancel(ref, PAUSED);
        return ended;
      })
      .catch((error: unknown) => adopted.fail(error));
    this.#context.background(response);
    return { run: adopted.adopted, response };
  }

  async #create(task: NewTask, given: RunTaskOptions = {}): Promise<[TaskRef, ExistingOptions]> {
    const { policy, ...options } = settings.readSettings<RunTaskOptions>(given, WORK_RULES);
    const asked = { nonce: this.#context.world.createId(), ...(policy !== undefined && { policy }) };
    const create = () => this.#options.store.create({ preferredWorker: this.worker, ...task }, asked);
    const id = requireCreated(await retryLostResponse(create, this.#context));
    return [{ tenant: task.tenant, id }, options];
  }

  async runExisting(ref: TaskRef, options: ExistingOptions = {}, adopted?: AdoptedRun): Promise<TaskResponse> {
    const { token, signal, onEvent, wait = true } = options;
    const parent = { parent: token };
    const own = signal ? CancellationToken.from(signal, parent) : new CancellationToken(parent);
    const cancels = own.onCancel((level, reason) => {
      this.#context.background(this.#options.store.cancel(ref, reason, { mode: toPreset(level) }));
    });
    this.#asked.add(ref);
    try {
      await this.#orders.open();
      const listener = onEvent && createListener('onEvent', onEvent, this.#options.hooks);
      await this.#claimAndRun(ref, { wait, onEvent: listener, adopted });
      const record = await this.#options.store.get(ref);
      if (record === undefined) throw new SettingsError('id', `there is no task '${ref.id}' of this tenant`);
      adopted?.finish(record);
      return toTaskResponse(record, await readJournal(this.#options.store, record));
    } finally {
      this.#asked.delete(ref);
      cancels[Symbol.dispose]();
      own[Symbol.dispose]();
    }
  }

  async serve(given: ServeOptions = {}): Promise<void> {
    const { concurrency = 16, agents, offers } = settings.readSettings<ServeOptions>(given, SERVE_RULES);
    await this.#orders.open();
    this.#context.shutdown.throwIfCancelled();
    if (this.#takes !== undefined) throw new SettingsError('serve', 'this runner serves already; create another one');
    this.#takes = new TakeLoop(this.#context, {
      session: this.#session,
      agents: agents ?? Object.keys(this.#options.agents),
      concurrency,
      live: () => this.#live.size - (this.#options.background?.live ?? 0),
      onTaken: (taken) => this.#context.background(this.#execute(taken)),
      sweeper: this.#sweeper,
      offers,
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
    this.#context.shutdown.cancel({ kind: 'shutdown' }, { mode });
    this.#orders.stop();
    this.#takes?.[Symbol.dispose]();
    for (const { holder } of this.#live.values()) holder.cancel({ kind: 'shutdown' }, { mode });
    this.#orders.wakeups.wake();
    return (this.#stopped ??= this.#leave());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop('now');
  }

  async #leave(): Promise<void> {
    await this.#context.waitForIdle();
    this.#session.current.stop();
    this.#handBack[Symbol.dispose]();
    await this.#orders[Symbol.asyncDispose]();
    this.#context.shutdown[Symbol.dispose]();
  }

  /** Retries until the task has run here or has ended elsewhere. */
  async #claimAndRun(ref: TaskRef, { wait, ...options }: RunHere & { readonly wait: boolean }): Promise<void> {
    for (;;) {
      this.#context.shutdown.throwIfCancelled();
      // Listen before the claim: a change in between must wake us.
      const wakeups = this.#orders.wakeups.listen(ref.id);
      try {
        const claim = await this.#session.claim(ref.id);
        if (claim.result === 'not-found') throw new SettingsError('id', `there is no task '${ref.id}' to work on`);
        if (claim.result === 'too-late') return;
        if (claim.result === 'claimed') {
          const end = await this.#execute(claim, options);
          if (end !== 'released' && end !== 'parked') return;
          this.#context.shutdown.throwIfCancelled();
          continue;
        }
        if (claim.result === 'session-ended') continue;
        if (claim.result === 'held') await this.#sweeper.sweep();
        if (!wait) return;
        await wakeups.wait(claim.until === undefined ? undefined : claim.until - this.#context.world.clock.now());
      } finally {
        wakeups[Symbol.dispose]();
      }
    }
  }

  async #execute(taken: TakenTask, { onEvent, adopted }: RunHere = {}): Promise<ExecutionEnd> {
    const { store, agents, background } = this.#options;
    const { id, tenant, epoch, agent, conversation } = taken.task;
    const work = adopted ?? findWork(agents, taken.task);
    if (work === undefined) {
      this.#handBack.claim(taken.claim);
      throw new SettingsError('agent', `this runner has no '${agent}', only ${Object.keys(agents).join(', ')}`);
    }
    const execution = new Execution(taken, {
      ...this.#options,
      context: this.#context,
      work,
      session: this.#session.current,
      check: (checked) => this.#orders.check(checked),
      onEvent,
      onUnfinished: (claim) => this.#handBack.claim(claim),
      isCrowded: () => this.#takes?.isFull ?? false,
    });
    this.#live.set(id, execution);
    if (this.#takes?.isFull) for (const { parking } of this.#live.values()) parking.update();
    this.#orders.schedulePoll();
    this.#context.emit({ type: 'task-start', tenant, id, epoch, ...(conversation !== undefined && { conversation }) });
    if (this.#context.shutdown.isCancelled) execution.holder.cancel({ kind: 'shutdown' }, { mode: 'now' });
    const preventParking = () => execution.parking.preventParking();
    const starting = { ...taken, store, runner: this, preventParking };
    const living = background?.runInTask(starting, () => execution.live()) ?? execution.live();
    this.#context.waitFor(living);
    let status: ExecutionEnd | 'lost' = 'lost';
    try {
      return (status = await living);
    } finally {
      if (this.#live.get(id) === execution) this.#live.delete(id);
      if (this.#live.size === 0) this.#orders.stopPolling();
      const told = this.#orders.checker.end(id, status);
      this.#context.waitFor(told);
      this.#context.emit(describeEnd({ tenant, id }, status));
      this.#takes?.pumpSoon();
      await told;
    }
  }
}

/** Only an end is a `task-end`: what it causes must not happen to a task that may continue. */
function describeEnd(ref: TaskRef, status: ExecutionEnd | 'lost'): RunnerEvent {
  if (status === 'released' || status === 'parked' || status === 'lost') return { type: 'task-left', ...ref, status };
  return { type: 'task-end', ...ref, status };
}
