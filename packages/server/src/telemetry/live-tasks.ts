import { type Context, ROOT_CONTEXT, type Span, SpanKind, type Tracer, trace } from '@opentelemetry/api';
import type { Clock } from '@whoa/core/embed';
import type { TaskHead, TaskOutcome, TaskStore } from '@whoa/tasks';
import type { ClaimRef, Orders } from '@whoa/tasks/store';
import type { Meter } from './meter.ts';
import { cancelAttributes, fail } from './run-spans.ts';

export type TakeAnswer = Extract<Awaited<ReturnType<TaskStore['take']>>, { answer: 'taken' }>;
type TakenTask = TakeAnswer['tasks'][number];
type StopOrder = NonNullable<Orders['stop']>;

/** A task that this process holds. */
interface LiveTask {
  readonly claim: ClaimRef;
  readonly head: TaskHead;
  readonly takenAt: number;
  readonly span: Span;
  /** The context that holds `span`. */
  readonly context: Context;
  /** How far the store's clock is ahead of the local clock. */
  aheadMs: number;
  stop?: StopOrder;
  cancel?: Span;
}

/** What a session of this process holds, and since when it is kept. */
interface HeldSession {
  readonly leaseMs: number;
  held: number;
  keptAt: number;
}

interface LiveTasksOptions {
  readonly tracer: Tracer;
  readonly meter: Meter;
  readonly clock: Clock;
}

/** How a claim ended here. */
export type ClaimEnd = TaskOutcome['status'] | 'released' | 'lost';

/** Work for which the end is never told must not be kept for ever. */
const MAX_LIVE = 100_000;
/** A session is renewed when this share of its lease is over. */
const BEAT = 1 / 3;

/** The tasks that this process holds, with their spans and times. */
export class LiveTasks {
  readonly #options: LiveTasksOptions;
  readonly #tasks = new Map<string, LiveTask>();
  readonly #sessions = new Map<string, HeldSession>();

  constructor(options: LiveTasksOptions) {
    this.#options = options;
  }

  get(id: string): Pick<LiveTask, 'context' | 'head'> | undefined {
    return this.#tasks.get(id);
  }

  /** A task was taken, by a request that was sent at `askedAt`. */
  begin({ claim, task: head, orders }: TakenTask, leaseMs: number, askedAt: number): void {
    const { tracer, meter, clock } = this.#options;
    const { id } = claim;
    // A repeated take returns the same claims.
    if (this.#tasks.get(id)?.claim.claim === claim.claim) return;
    this.end(id, 'lost');
    if (this.#tasks.size >= MAX_LIVE) this.end(this.#tasks.keys().next().value!, 'lost');
    const attributes = {
      'whoa.task.id': id,
      'whoa.task.epoch': claim.epoch,
      'whoa.tenant': head.tenant,
      'gen_ai.agent.name': head.agent,
      ...(head.conversation !== undefined && { 'gen_ai.conversation.id': head.conversation }),
    };
    const span = tracer.startSpan(`whoa.task ${head.agent}`, { kind: SpanKind.CONSUMER, attributes }, ROOT_CONTEXT);
    const takenAt = clock.now();
    const context = trace.setSpan(ROOT_CONTEXT, span);
    this.#tasks.set(id, { claim, head, takenAt, span, context, aheadMs: orders.now - takenAt });
    this.#hold(claim.session, leaseMs, askedAt);
    meter.set('whoa.task.running', this.#tasks.size);
    if (isNew(head)) meter.time('whoa.task.wait', waitOf(head, orders.now), [head.agent]);
    this.obey(id, orders);
  }

  /** Orders for the holder of a task arrived. */
  obey(id: string, { now, stop }: Pick<Orders, 'now' | 'stop'>): void {
    const live = this.#tasks.get(id);
    if (live === undefined) return;
    live.aheadMs = now - this.#options.clock.now();
    if (stop !== undefined) this.stop(id, stop);
  }

  /** A stop order arrived. The first one counts. */
  stop(id: string, stop: StopOrder): void {
    const live = this.#tasks.get(id);
    if (live === undefined || live.stop !== undefined) return;
    const { meter, tracer } = this.#options;
    live.stop = stop;
    const delayMs = this.#storeNow(live) - stop.reason.at;
    meter.time('whoa.cancel.observed', delayMs);
    const attributes = { ...cancelAttributes(stop.reason), 'whoa.cancel.delay': Math.max(0, delayMs) / 1_000 };
    live.cancel = tracer.startSpan('whoa.cancel', { kind: SpanKind.INTERNAL, attributes }, live.context);
  }

  /** The claim is over. Returns what it was about, unless it was over before. */
  end(id: string, status: ClaimEnd, error?: TaskOutcome['error']): TaskHead | undefined {
    const live = this.#tasks.get(id);
    if (live === undefined) return undefined;
    const { meter, clock } = this.#options;
    const { head, span, cancel, stop } = live;
    this.#tasks.delete(id);
    this.#drop(live.claim.session);
    meter.set('whoa.task.running', this.#tasks.size);
    meter.add('whoa.task.ended', [head.agent, status]);
    meter.time('whoa.task.duration', clock.now() - live.takenAt, [head.agent, status]);
    if (stop !== undefined && status === 'cancelled')
      meter.time('whoa.cancel.settled', this.#storeNow(live) - stop.reason.at);
    span.setAttribute('whoa.task.status', status);
    if (status === 'failed' || status === 'lost') fail(span, error?.code ?? status);
    cancel?.end();
    span.end();
    return head;
  }

  /** A session was renewed, by a request that was sent at `askedAt`. */
  keep(session: string, askedAt: number): void {
    const kept = this.#sessions.get(session);
    if (kept === undefined) return;
    const { meter, clock } = this.#options;
    meter.time('whoa.beat.late', clock.now() - kept.keptAt - kept.leaseMs * BEAT);
    kept.keptAt = askedAt;
  }

  #hold(session: string, leaseMs: number, askedAt: number): void {
    const kept = this.#sessions.get(session);
    if (kept === undefined) this.#sessions.set(session, { leaseMs, held: 1, keptAt: askedAt });
    else kept.held++;
  }

  /** Forget a session without tasks: it is not renewed. */
  #drop(session: string): void {
    const kept = this.#sessions.get(session);
    if (kept !== undefined && --kept.held === 0) this.#sessions.delete(session);
  }

  #storeNow({ aheadMs }: LiveTask): number {
    return this.#options.clock.now() + aheadMs;
  }
}

/** A task that no worker has had before. */
export function isNew({ epoch, deaths }: TaskHead): boolean {
  return epoch === 1 && deaths === 0;
}

/** How long a task waited since it could start. */
export function waitOf({ createdAt, notBefore = 0 }: TaskHead, now: number): number {
  return now - Math.max(createdAt, notBefore);
}
