import { type Context, ROOT_CONTEXT, type Span, SpanKind, type Tracer, trace } from '@opentelemetry/api';
import type { Clock } from '@whoa/core/embed';
import type { Question, TaskOutcome, TaskStore, TaskSummary } from '@whoa/tasks';
import type { ClaimRef, Orders } from '@whoa/tasks/store';
import { addTrace, findLinks } from '../../http/traceparent.ts';
import type { Meter, Series } from './meter.ts';
import { cancelAttributes, fail } from './run-spans.ts';

export type TakeResult = Extract<Awaited<ReturnType<TaskStore['take']>>, { result: 'taken' }>;
type TakenTask = TakeResult['tasks'][number];
type Closes = Parameters<TaskStore['append']>[1]['closes'];
type StopOrder = NonNullable<Orders['stop']>;

/** A task that this process holds. */
interface LiveTask {
  readonly claim: ClaimRef;
  readonly head: TaskSummary;
  readonly takenAt: number;
  /** Only where an SDK is registered. */
  readonly span: Span | undefined;
  /** The context that holds `span`. */
  readonly context: Context;
  /** How far the store's clock is ahead of the local clock. */
  aheadMs: number;
  /** Those that its worker must know, by id. */
  readonly questions: Map<string, Question>;
  stop?: StopOrder;
  cancel?: Span | undefined;
}

/** What a session of this process holds, and since when it is kept. */
interface HeldSession {
  readonly leaseMs: number;
  held: number;
  keptAt: number;
}

interface LiveTasksOptions {
  /** Undefined where no SDK is registered: then spans would only cost time. */
  readonly tracer: () => Tracer | undefined;
  readonly meter: Meter;
  readonly clock: Clock;
}

/** How a claim ended here. */
export type ClaimEnd = TaskOutcome['status'] | 'released' | 'parked' | 'lost';

/** The series of one agent, so that they are looked up once. */
type AgentSeries = { readonly wait: Series } & Readonly<Record<ClaimEnd, { count: Series; duration: Series }>>;

const ENDS: readonly ClaimEnd[] = ['success', 'failed', 'cancelled', 'released', 'parked', 'lost'];
const MAX_AGENTS = 1_000;
/** Work for which the end is never told must not be kept for ever. */
const MAX_LIVE = 100_000;
/** A session is renewed when this share of its lease is over. */
const BEAT = 1 / 3;

/** The tasks that this process holds, with their spans and times. */
export class LiveTasks {
  readonly #options: LiveTasksOptions;
  readonly #tasks = new Map<string, LiveTask>();
  readonly #sessions = new Map<string, HeldSession>();
  readonly #agents = new Map<string, AgentSeries>();
  readonly #running: Series;

  constructor(options: LiveTasksOptions) {
    this.#options = options;
    this.#running = options.meter.series('whoa.task.running');
    this.#running.set(0);
  }

  get(id: string): Pick<LiveTask, 'context' | 'head' | 'span'> | undefined {
    return this.#tasks.get(id);
  }

  /** A task was taken, by a request that was sent at `askedAt`. */
  begin({ claim, task: head, orders }: TakenTask, leaseMs: number, askedAt: number): void {
    const { clock } = this.#options;
    const { id } = claim;
    const before = this.#tasks.get(id);
    if (before !== undefined) {
      // A repeated take returns the same claims.
      if (before.claim.claim === claim.claim) return;
      this.end(id, 'lost');
    }
    if (this.#tasks.size >= MAX_LIVE) this.end(this.#tasks.keys().next().value!, 'lost');
    const origin = addTrace(ROOT_CONTEXT, head.traceparent);
    const span = this.#startSpan(head, origin);
    const within = span === undefined ? origin : trace.setSpan(origin, span);
    const takenAt = clock.now();
    const questions = new Map((orders.questions ?? []).map((one) => [one.id, one]));
    this.#tasks.set(id, { claim, head, takenAt, span, context: within, aheadMs: orders.now - takenAt, questions });
    const session = this.#sessions.get(claim.session) ?? { leaseMs, held: 0, keptAt: askedAt };
    session.held++;
    this.#sessions.set(claim.session, session);
    this.#running.set(this.#tasks.size);
    const { createdAt, notBefore = 0 } = head;
    const isNew = head.epoch === 1 && head.crashes === 0;
    // It could start since then.
    if (isNew) this.#getSeries(head.agent).wait.time(orders.now - Math.max(createdAt, notBefore));
    if (orders.stop !== undefined) this.stop(id, orders.stop);
  }

  /** Orders for the holder of a task arrived. */
  applyOrders(id: string, { now, stop, questions }: Pick<Orders, 'now' | 'stop' | 'questions'>): void {
    const live = this.#tasks.get(id);
    if (live === undefined) return;
    live.aheadMs = now - this.#options.clock.now();
    for (const question of questions ?? []) live.questions.set(question.id, question);
    if (stop !== undefined) this.stop(id, stop);
  }

  /** The worker of a task has closed questions. */
  closeQuestions(id: string, closes: Closes = []): void {
    const questions = this.#tasks.get(id)?.questions;
    for (const close of closes) {
      const question = questions?.get(close.id);
      if (!question || !questions!.delete(close.id)) continue;
      const { kind, askedAt, answer, closed } = question;
      const end = close.why === 'journaled' ? (closed?.why ?? close.why) : close.why;
      const at = answer?.at ?? closed?.at ?? this.#storeNow(this.#tasks.get(id)!);
      this.#options.meter.series('whoa.question.wait', kind, end).time(at - askedAt);
    }
  }

  /** A stop order arrived. The first one counts. */
  stop(id: string, stop: StopOrder): void {
    const live = this.#tasks.get(id);
    if (live === undefined || live.stop !== undefined) return;
    const { meter, tracer } = this.#options;
    live.stop = stop;
    const delayMs = this.#storeNow(live) - stop.reason.at;
    meter.series('whoa.cancel.observed').time(delayMs);
    const attributes = { ...cancelAttributes(stop.reason), 'whoa.cancel.delay': Math.max(0, delayMs) / 1_000 };
    const links = findLinks(stop.reason);
    live.cancel = tracer()?.startSpan('whoa.cancel', { kind: SpanKind.INTERNAL, attributes, links }, live.context);
  }

  /** The claim is over. Returns what it was about, unless it was over before. */
  end(id: string, status: ClaimEnd, error?: TaskOutcome['error']): TaskSummary | undefined {
    const live = this.#tasks.get(id);
    if (live === undefined) return undefined;
    const { meter, clock } = this.#options;
    const { head, span, cancel, stop } = live;
    this.#tasks.delete(id);
    const session = this.#sessions.get(live.claim.session);
    // Without tasks it is not renewed.
    if (session !== undefined && --session.held === 0) this.#sessions.delete(live.claim.session);
    this.#running.set(this.#tasks.size);
    const ended = this.#getSeries(head.agent)[status];
    ended.count.add();
    ended.duration.time(clock.now() - live.takenAt);
    if (stop !== undefined && status === 'cancelled')
      meter.series('whoa.cancel.settled').time(this.#storeNow(live) - stop.reason.at);
    cancel?.end();
    if (span === undefined) return head;
    span.setAttribute('whoa.task.status', status);
    if (status === 'failed' || status === 'lost') fail(span, error?.code ?? status);
    span.end();
    return head;
  }

  /** A session was renewed, by a request that was sent at `askedAt`. */
  keep(session: string, askedAt: number): void {
    const kept = this.#sessions.get(session);
    if (kept === undefined) return;
    const { meter, clock } = this.#options;
    meter.series('whoa.heartbeat.delay').time(clock.now() - kept.keptAt - kept.leaseMs * BEAT);
    kept.keptAt = askedAt;
  }

  #getSeries(agent: string): AgentSeries {
    const known = this.#agents.get(agent);
    if (known !== undefined) return known;
    const { meter } = this.#options;
    const ends = ENDS.map((status) => {
      const labels = [agent, status];
      const series = {
        count: meter.series('whoa.claim.ended', ...labels),
        duration: meter.series('whoa.task.duration', ...labels),
      };
      return [status, series] as const;
    });
    const made = { wait: meter.series('whoa.task.wait', agent), ...Object.fromEntries(ends) } as AgentSeries;
    if (this.#agents.size < MAX_AGENTS) this.#agents.set(agent, made);
    return made;
  }

  #startSpan({ id, epoch, tenant, agent, conversation }: TaskSummary, origin: Context): Span | undefined {
    const tracer = this.#options.tracer();
    if (tracer === undefined) return undefined;
    const attributes = {
      'whoa.task.id': id,
      'whoa.task.epoch': epoch,
      'whoa.tenant': tenant,
      'gen_ai.agent.name': agent,
      ...(conversation !== undefined && { 'gen_ai.conversation.id': conversation }),
    };
    return tracer.startSpan(`whoa.task ${agent}`, { kind: SpanKind.CONSUMER, attributes }, origin);
  }

  #storeNow({ aheadMs }: LiveTask): number {
    return this.#options.clock.now() + aheadMs;
  }
}
