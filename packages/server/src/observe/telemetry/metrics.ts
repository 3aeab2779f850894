/** What one metric says, and how it is counted. */
export interface Metric {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  /** As OpenTelemetry writes it: `s`, `By`, or what is counted, in braces. */
  readonly unit: string;
  readonly labels: readonly string[];
  readonly help: string;
  /** Upper bounds of the buckets of a histogram, in seconds. */
  readonly bounds?: readonly number[];
}

/** The name of a metric. */
export type MetricName =
  | 'whoa.task.created'
  | 'whoa.task.running'
  | 'whoa.task.ended'
  | 'whoa.task.wait'
  | 'whoa.task.duration'
  | 'whoa.task.reclaimed'
  | 'whoa.question.wait'
  | 'whoa.claim.ended'
  | 'whoa.ready.tasks'
  | 'whoa.oldest.ready'
  | 'whoa.open.questions'
  | 'whoa.oldest.question'
  | 'whoa.asking.tasks'
  | 'whoa.parked.tasks'
  | 'whoa.feed.age'
  | 'whoa.take.wakeup'
  | 'whoa.heartbeat.delay'
  | 'whoa.cancel.requested'
  | 'whoa.cancel.observed'
  | 'whoa.cancel.settled'
  | 'whoa.work.abandoned'
  | 'whoa.work.late'
  | 'whoa.process.survivors'
  | 'whoa.journal.written'
  | 'whoa.model.tokens'
  | 'whoa.store.errors'
  | 'whoa.webhook.attempts';

const ONCE = 'Of the whole store, read once per fleet, every 15 s.';

/** All metrics. OpenTelemetry, `/metrics`, the docs and the dashboard use these names. */
export const METRICS: Readonly<Record<MetricName, Metric>> = {
  'whoa.task.created': counter('{task}', 'Tasks that this process created.', 'agent'),
  'whoa.task.running': gauge('{task}', 'Tasks that this process holds now.'),
  'whoa.task.ended': counter(
    '{task}',
    'Tasks that ended, of the whole store and once each, however they ended: success, failed, cancelled. `code`: of the error, or the kind of the reason. The same in every process: use the maximum.',
    'agent',
    'status',
    'code',
  ),
  'whoa.claim.ended': counter(
    '{task}',
    'Tasks whose claim ended in this process: success, failed, cancelled; parked if it waits for a person; released or lost if another worker continues.',
    'agent',
    'status',
  ),
  'whoa.task.wait': histogram('Time from the moment a new task could start until this process took it.', 'agent'),
  'whoa.task.duration': histogram('Time from taking a task to its end in this process.', 'agent', 'status'),
  'whoa.task.reclaimed': counter('{task}', 'Tasks that this process reclaimed because their worker had crashed.'),
  'whoa.question.wait': {
    ...histogram(
      'Time from a question until its answer, or until it closed without one: answered, outdated, expired, withdrawn. Without those of tasks that were cancelled or ended first.',
      'kind',
      'end',
    ),
    bounds: [1, 5, 15, 60, 300, 900, 3_600, 14_400, 43_200, 86_400, 259_200, 604_800],
  },
  'whoa.ready.tasks': gauge('{task}', `Tasks that wait for a worker. ${ONCE}`, 'agent'),
  'whoa.oldest.ready': gauge('s', `How long the oldest waiting task has been ready. ${ONCE}`, 'agent'),
  'whoa.open.questions': gauge('{question}', `Questions that no one has answered. ${ONCE}`),
  'whoa.oldest.question': gauge('s', `How long the oldest of them has been open. ${ONCE}`),
  'whoa.asking.tasks': gauge('{task}', `Tasks that have asked, while a worker holds them. ${ONCE}`),
  'whoa.parked.tasks': gauge('{task}', `Tasks that wait for an answer without a worker. ${ONCE}`),
  'whoa.feed.age': gauge(
    's',
    `How long ago the oldest change happened that a consumer has not done. ${ONCE}`,
    'consumer',
  ),
  'whoa.take.wakeup': histogram('Time from the notification of a ready task until a take returned one.'),
  'whoa.heartbeat.delay': histogram(
    "Time from a heartbeat's due time (a third of the lease) until the session was renewed.",
  ),
  'whoa.cancel.requested': counter('{cancel}', 'Cancels that this process sent to the store.', 'result'),
  'whoa.cancel.observed': histogram("Time from a cancel until the task's worker received it."),
  'whoa.cancel.settled': histogram('Time from a cancel until the end of the task.'),
  'whoa.work.abandoned': counter('{work}', 'Calls and other work that still ran when Whoa stopped waiting for them.'),
  'whoa.work.late': counter('{work}', 'Abandoned calls that returned after all.'),
  'whoa.process.survivors': counter('{process}', 'Operating-system processes that may have survived a stop.'),
  'whoa.journal.written': counter('By', 'Bytes of events that this process wrote to journals.'),
  'whoa.model.tokens': counter('{token}', 'Model tokens: input or output.', 'agent', 'type'),
  'whoa.store.errors': counter(
    '{error}',
    'Failed requests to the store, by what was asked. They are retried.',
    'operation',
  ),
  'whoa.webhook.attempts': counter(
    '{attempt}',
    'Attempts to deliver a webhook: delivered, failed, or refused.',
    'result',
  ),
};

function counter(unit: string, help: string, ...labels: readonly string[]): Metric {
  return { kind: 'counter', unit, labels, help };
}

function gauge(unit: string, help: string, ...labels: readonly string[]): Metric {
  return { kind: 'gauge', unit, labels, help };
}

/** Times, in seconds. */
function histogram(help: string, ...labels: readonly string[]): Metric {
  return { kind: 'histogram', unit: 's', labels, help };
}

const UNITS: Readonly<Record<string, string>> = { s: '_seconds', By: '_bytes' };

/**
 * Converts a name to the one in `/metrics`: with its unit, and `_total` for a counter.
 *
 * @returns The name, for example `whoa_task_duration_seconds`.
 */
export function toPrometheusName(name: MetricName): string {
  const { kind, unit } = METRICS[name];
  return `${name.replaceAll('.', '_')}${UNITS[unit] ?? ''}${kind === 'counter' ? '_total' : ''}`;
}
