import {
  type Context,
  context,
  type MeterProvider,
  metrics,
  type Span,
  SpanKind,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import type { Agent, RunEvent, RunOptions } from '@whoa/core';
import { systemClock, systemWorld, type World } from '@whoa/core/embed';
import { type Hooks, reportFailure } from '@whoa/core/internal';
import type { RunnerOptions, TaskHandler, TaskStore } from '@whoa/tasks';
import { LiveTasks } from './live-tasks.ts';
import { Meter, type MetricOutput } from './meter.ts';
import type { MetricName } from './metrics.ts';
import { observeStore } from './observed-store.ts';
import type { PrometheusMetrics } from './prometheus.ts';
import { agentSpan, fail, getErrorCode, RunSpans } from './run-spans.ts';
import { showFigures } from './store-figures.ts';
import { type TelemetryLog, WorkCounts } from './work-counts.ts';

/** Options of telemetry. All have defaults. */
export interface TelemetryOptions {
  /** Defaults to the one that is registered with OpenTelemetry. */
  readonly tracerProvider?: TracerProvider | undefined;
  /** Defaults to the one that is registered with OpenTelemetry when the telemetry is created. */
  readonly meterProvider?: MeterProvider | undefined;
  /** Records the metrics here too: `await createPrometheusMetrics()`. */
  readonly prometheus?: PrometheusMetrics | undefined;
  /** Called with things that went wrong. For your own logger. */
  readonly onLog?: ((log: TelemetryLog) => unknown) | undefined;
  readonly world?: Pick<World, 'clock'> | undefined;
}

/** Measures agents, runners and stores. It only observes: it cannot delay or fail what it measures. */
export interface Telemetry extends AsyncDisposable {
  /** Returns options of a runner that is measured: `createRunner(telemetry.observe({ store, agents }))`. */
  observe<Options extends RunnerOptions>(options: Options): Options;
  /** Returns the same store, measured. Use it for everything but a runner, for example `createTaskApi`. */
  observeStore(store: TaskStore): TaskStore;
  /** Returns the same agent, measured. Its sub-agents are included. */
  observeAgent(agent: Agent): Agent;
  /**
   * Shows what waits in a store, and counts the ends of its tasks, until the result is disposed. One process reads it for all
   * that do.
   */
  watchStore(store: TaskStore): Promise<AsyncDisposable>;
  /** Counts one more. For parts of Whoa. */
  count(name: MetricName, ...labels: readonly string[]): void;
  /** Passes an event to the `log` option. */
  log(log: TelemetryLog): void;
}

/** How long sending the last spans and metrics may take. */
const FLUSH_MS = 2_000;
const SCOPE = '@whoa/server';

/**
 * Creates telemetry: OpenTelemetry spans and metrics where an SDK is registered, and metrics for Prometheus where you
 * pass them.
 *
 * @returns The telemetry. Dispose it to send what OpenTelemetry still holds.
 *
 * @example
 * ```ts
 * import { createPrometheusMetrics, createTelemetry } from '@whoa/server/telemetry';
 * import { createRunner } from '@whoa/tasks';
 *
 * const prometheus = await createPrometheusMetrics();
 * const telemetry = createTelemetry({ prometheus });
 * const runner = createRunner(telemetry.observe({ store, agents: { assistant: agent } }));
 * await runner.serve();
 * console.log(await prometheus.read());
 * ```
 */
export function createTelemetry(options: TelemetryOptions = {}): Telemetry {
  return new ObservingTelemetry(options);
}

class ObservingTelemetry implements Telemetry {
  readonly #options: TelemetryOptions;
  readonly #tracer: () => Tracer | undefined;
  readonly #meter: Meter;
  readonly #tasks: LiveTasks;
  readonly #counts: WorkCounts;
  /** Runs of agents that are tasks: their stop reports are read at the end of the run. */
  readonly #agentTasks = new WeakSet<object>();
  #hasWarned = false;

  constructor(options: TelemetryOptions) {
    this.#options = options;
    this.#tracer = findTracer(options.tracerProvider);
    const { meterProvider = metrics, prometheus } = options;
    const outputs: MetricOutput[] = [{ meter: meterProvider.getMeter(SCOPE), isPrometheus: false }];
    if (prometheus) outputs.push({ meter: prometheus.meterProvider.getMeter(SCOPE), isPrometheus: true });
    this.#meter = new Meter(outputs);
    this.#counts = new WorkCounts(this.#meter, (log) => this.log(log));
    this.#tasks = new LiveTasks({ tracer: this.#tracer, meter: this.#meter, clock: this.#clock });
  }

  get #clock() {
    return this.#options.world?.clock ?? systemClock;
  }

  observe<Options extends RunnerOptions>(options: Options): Options {
    const { hooks, agents } = options;
    const own: RunnerOptions['hooks'] = {
      'task-end': (event, about) => {
        if (event.status === 'failed')
          this.#ignoringErrors(() => this.log({ level: 'warn', event: 'task-failed', taskId: event.id }));
        return hooks?.['task-end']?.(event, about);
      },
      'task-left': (event, about) => {
        if (event.status === 'lost') this.#ignoringErrors(() => this.#recordLoss(event.id));
        return hooks?.['task-left']?.(event, about);
      },
      'store-error': (event, about) => {
        this.#ignoringErrors(() => this.#recordStoreError(event));
        return hooks?.['store-error']?.(event, about);
      },
    };
    return {
      ...options,
      store: this.observeStore(options.store),
      agents: Object.fromEntries(Object.entries(agents).map(([name, work]) => [name, this.#observeWork(work)])),
      hooks: extend(hooks, own),
    };
  }

  observeStore(store: TaskStore): TaskStore {
    return observeStore(store, {
      tasks: this.#tasks,
      meter: this.#meter,
      clock: this.#clock,
      ignoringErrors: (work) => this.#ignoringErrors(work),
      onOutcome: (outcome, id) => {
        const live = this.#tasks.get(id);
        if (live !== undefined && !this.#agentTasks.has(live))
          this.#counts.recordOutcome(outcome, { agent: live.head.agent, taskId: id });
      },
    });
  }

  observeAgent(agent: Agent): Agent {
    return {
      ...agent,
      run: (input, given = {}) => {
        const { onEvent, runIn } = this.#beginRun(agent, given.id);
        const any: NonNullable<RunOptions['hooks']>['any'] = (event, about) => {
          this.#ignoringErrors(() => onEvent(event));
          return given.hooks?.any?.(event, about);
        };
        return runIn(() => agent.run(input, { ...given, hooks: extend(given.hooks, { any }) }));
      },
    };
  }

  watchStore(store: TaskStore): Promise<AsyncDisposable> {
    const onError = (error: unknown): void => this.#ignoringErrors(() => this.#recordStoreError({ error }));
    const world = { ...systemWorld, clock: this.#clock };
    return showFigures({ store, meter: this.#meter, world, onError });
  }

  count(name: MetricName, ...labels: readonly string[]): void {
    this.#ignoringErrors(() => this.#meter.series(name, ...labels).add());
  }

  log(log: TelemetryLog): void {
    this.#ignoringErrors(() => {
      const answer = this.#options.onLog?.(log);
      if (answer instanceof Promise) answer.catch((error: unknown) => this.#warn(error));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { tracerProvider = trace.getTracerProvider(), meterProvider = metrics.getMeterProvider() } = this.#options;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#clock.setTimer(FLUSH_MS, resolve);
    // One that fails must not cut off the other.
    const flushed = Promise.all(
      [tracerProvider, meterProvider].map((provider) => flush(provider).catch((error: unknown) => this.#warn(error))),
    );
    // A receiver that does not respond must not delay the end.
    await Promise.race([flushed, promise]);
    timer[Symbol.dispose]();
  }

  #observeWork(work: TaskHandler): TaskHandler {
    if (typeof work === 'function')
      return (given) => (this.#tracer() === undefined ? work(given) : this.#inTask(given.task.id, () => work(given)));
    if ('run' in work) return this.observeAgent(work);
    return {
      runTask: (given) => this.#inTask(given.task.id, () => work.runTask(given)),
      ...(work.settle !== undefined && {
        settle: (given) => this.#inTask(given.task.id, () => work.settle!(given)),
      }),
    };
  }

  #inTask<T>(id: string, work: () => T): T {
    const live = this.#tasks.get(id);
    return live?.span === undefined ? work() : context.with(live.context, work);
  }

  /** Starts the span of a run. The run of a task is inside the span of the task. */
  #beginRun({ name }: Agent, runId = '') {
    const taskId = runId.slice(0, runId.lastIndexOf('.'));
    const live = this.#tasks.get(taskId);
    if (live !== undefined) this.#agentTasks.add(live);
    const parent = live?.context ?? context.active();
    const conversation = live?.head.conversation;
    const [title, attributes] = agentSpan(name, {
      ...(conversation !== undefined && { 'gen_ai.conversation.id': conversation }),
    });
    let within: Context | undefined;
    let span: Span | undefined;
    let spans: RunSpans | undefined;
    this.#ignoringErrors(() => {
      const tracer = this.#tracer();
      if (tracer === undefined) return;
      span = tracer.startSpan(title, { kind: SpanKind.INTERNAL, attributes }, parent);
      within = trace.setSpan(parent, span);
      if (span.isRecording()) spans = new RunSpans({ tracer, context: within });
    });
    const onEvent = (event: RunEvent): void => {
      this.#counts.recordRun(event, { agent: name, ...(live && { taskId }) });
      // Its claim is over: a run that parks is not cancelled.
      if (event.type === 'level-changed' && live !== undefined && this.#tasks.get(taskId) !== live) return;
      spans?.note(event);
    };
    const runIn = <T>(run: () => T): T => {
      try {
        return within === undefined ? run() : context.with(within, run);
      } catch (error) {
        // The input was refused, so there is no run that would end the span.
        if (span !== undefined) fail(span, getErrorCode(error));
        span?.end();
        throw error;
      }
    };
    return { onEvent, runIn };
  }

  #recordStoreError({ error }: { readonly error: unknown }): void {
    const { operation = 'other' } = (error ?? {}) as { readonly operation?: string };
    this.#meter.series('whoa.store.errors', operation).add();
    this.log({ level: 'error', event: 'store-error', value: getErrorCode(error) });
  }

  #recordLoss(taskId: string): void {
    // Nothing was written, so the store was not asked.
    const agent = this.#tasks.end(taskId, 'lost')?.agent;
    this.log({ level: 'warn', event: 'task-lost', taskId, ...(agent !== undefined && { agent }) });
  }

  /** An SDK, a processor or a logger that throws must not disturb what is measured. The first failure is reported. */
  #ignoringErrors(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#warn(error);
    }
  }

  #warn(error: unknown): void {
    if (!this.#hasWarned) reportFailure(undefined, 'telemetry', error);
    this.#hasWarned = true;
  }
}

/**
 * Finds the tracer once an SDK is registered, even if that is after the telemetry was created. Without one, spans that go
 * nowhere would only cost time.
 */
function findTracer(given: TracerProvider | undefined): () => Tracer | undefined {
  const tracer = (given ?? trace).getTracer(SCOPE);
  if (given !== undefined) return () => tracer;
  const registered = (provider: TracerProvider & { getDelegateTracer?: (name: string) => unknown }): boolean =>
    provider.getDelegateTracer === undefined || provider.getDelegateTracer(SCOPE) !== undefined;
  return () => (registered(trace.getTracerProvider()) ? tracer : undefined);
}

/** Sends what a provider of an SDK still holds. The interface of OpenTelemetry has no method for it. */
async function flush(provider: object): Promise<void> {
  type Flushable = { forceFlush?: () => Promise<void>; getDelegate?: () => Flushable };
  const given = provider as Flushable;
  const real = given.getDelegate?.() ?? given;
  await real.forceFlush?.();
}

/** Adds a hook. The others stay, also those that are methods of a class. */
function extend<Event extends { readonly type: string }>(
  hooks: Hooks<Event> | undefined,
  own: Partial<Hooks<Event>>,
): Hooks<Event> {
  return Object.assign(Object.create(hooks ?? null) as object, own) as Hooks<Event>;
}
