import { trace } from '@opentelemetry/api';
import type { Clock } from '@whoa/core/embed';
import type { TaskOutcome, TaskStore } from '@whoa/tasks';
import type { Hint } from '@whoa/tasks/store';
import { findTrace } from '../../http/traceparent.ts';
import type { LiveTasks, TakeResult } from './live-tasks.ts';
import type { Meter } from './meter.ts';

export interface ObserverOptions {
  readonly tasks: LiveTasks;
  readonly meter: Meter;
  readonly clock: Clock;
  /** Runs a piece of telemetry; its failure affects nothing else. */
  readonly ignoringErrors: (work: () => void) => void;
  /** Called with the end of a task, before it is forgotten. */
  readonly onOutcome: (outcome: TaskOutcome, id: string) => void;
}

/** Returns the same store; everything that passes through it is measured. */
export function observeStore(store: TaskStore, options: ObserverOptions): TaskStore {
  const observed = { ...observeDelivery(store, options), ...observeWork(store, options) };
  const bound = new Map<PropertyKey, unknown>();
  return new Proxy(store, {
    get(_target, name) {
      if (Object.hasOwn(observed, name)) return observed[name as keyof typeof observed];
      const value: unknown = Reflect.get(store, name, store);
      if (typeof value !== 'function') return value;
      if (!bound.has(name)) bound.set(name, value.bind(store));
      return bound.get(name);
    },
  });
}

/** How tasks reach this worker, and how it keeps them. */
function observeDelivery(store: TaskStore, { tasks, meter, clock, ignoringErrors }: ObserverOptions) {
  /** When this process was first notified of a ready task, since its last take. */
  let rungAt: number | undefined;

  function recordTake(answer: TakeResult, { leaseMs }: Parameters<TaskStore['take']>[0], asked: number) {
    if (rungAt !== undefined && rungAt <= asked) {
      if (answer.tasks.length > 0) meter.series('whoa.take.wakeup').time(clock.now() - rungAt);
      rungAt = undefined;
    }
    for (const taken of answer.tasks) tasks.begin(taken, leaseMs, asked);
  }

  function recordHint(hint: Hint): void {
    if (hint.type === 'ready') rungAt ??= clock.now();
    if (hint.type === 'cancel' && hint.order !== undefined) tasks.stop(hint.id, hint.order.stop);
  }

  return {
    async take(request) {
      const asked = clock.now();
      const answer = await store.take(request);
      if (answer.result === 'taken') ignoringErrors(() => recordTake(answer, request, asked));
      return answer;
    },
    async claim(id, request) {
      const asked = clock.now();
      const answer = await store.claim(id, request);
      if (answer.result === 'claimed') ignoringErrors(() => tasks.begin(answer, request.leaseMs, asked));
      return answer;
    },
    async claimMany(ids, request) {
      const asked = clock.now();
      const answers = await store.claimMany(ids, request);
      ignoringErrors(() => {
        for (const one of answers) if (one.result === 'claimed') tasks.begin(one, request.leaseMs, asked);
      });
      return answers;
    },
    async heartbeat(beat) {
      const asked = clock.now();
      const answer = await store.heartbeat(beat);
      ignoringErrors(() => {
        if (answer.result !== 'alive') return;
        tasks.keep(beat.session, asked);
        for (const { id, ...orders } of answer.orders) tasks.applyOrders(id, orders);
      });
      return answer;
    },
    async sweep(given) {
      const swept = await store.sweep(given);
      ignoringErrors(() => meter.series('whoa.task.reclaimed').add(swept.reclaimed));
      return swept;
    },
    watch: (filter, listener) =>
      store.watch(filter, (hint) => {
        ignoringErrors(() => recordHint(hint));
        listener(hint);
      }),
  } satisfies Partial<TaskStore>;
}

/** What is written about tasks. */
function observeWork(store: TaskStore, { tasks, meter, ignoringErrors, onOutcome }: ObserverOptions) {
  const find = <T>(found: () => T): T | undefined => {
    let value: T | undefined;
    ignoringErrors(() => (value = found()));
    return value;
  };
  return {
    async create(task, given) {
      const receipt = await store.create({ ...task, ...find(() => findTrace(task.traceparent)) }, given);
      ignoringErrors(() => {
        if (receipt.result !== 'created') return;
        meter.series('whoa.task.created', task.agent).add();
        // The span of the task will be inside this one, in whichever process.
        trace.getActiveSpan()?.addEvent('whoa.task.created', { 'whoa.task.id': receipt.task.id });
      });
      return receipt;
    },
    async cancel(target, reason, given) {
      const receipt = await store.cancel(target, { ...reason, ...find(() => findTrace(reason?.traceparent)) }, given);
      ignoringErrors(() => meter.series('whoa.cancel.requested', receipt.result).add());
      return receipt;
    },
    async append(claim, batch) {
      const orders = await store.append(claim, batch);
      ignoringErrors(() => {
        meter.series('whoa.journal.written').add(measureBytes(batch.events));
        tasks.closeQuestions(claim.id, batch.closes);
        tasks.applyOrders(claim.id, orders);
      });
      return orders;
    },
    async release(claim, options) {
      const receipt = await store.release(claim, options);
      ignoringErrors(() => tasks.end(claim.id, 'released'));
      return receipt;
    },
    async park(claim, seen) {
      const receipt = await store.park(claim, seen);
      ignoringErrors(() => {
        if (receipt.result === 'busy') tasks.applyOrders(claim.id, receipt.orders);
        else tasks.end(claim.id, 'parked');
      });
      return receipt;
    },
    finish(claim, outcome) {
      const finishing = store.finish(claim, outcome);
      // Not awaited here: this is part of every task, and a wait has its price. It is called before the caller continues.
      finishing.then(
        ({ status }) =>
          ignoringErrors(() => {
            onOutcome(outcome, claim.id);
            tasks.end(claim.id, status, outcome.error);
          }),
        () => {},
      );
      return finishing;
    },
  } satisfies Partial<TaskStore>;
}

function measureBytes(events: readonly unknown[]): number {
  return events.reduce<number>((sum, event) => sum + Buffer.byteLength(JSON.stringify(event)), 0);
}
