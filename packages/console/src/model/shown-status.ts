import type { CallState } from '@whoa/core/embed';
import type { TaskStatus, TaskSummary } from '@whoa/tasks';
import { formatClock } from './format.ts';
import type { CallModel } from './run-model.ts';

/** A status as a shape and a word. */
export type ShownStatus = TaskStatus | CallState | 'waiting' | 'lost' | 'undone' | TakenOver;

/** What other tasks do with the message of a task, which then never begins. */
type TakenOver = 'steered' | 'merged' | 'superseded';
const TAKEN_OVER: readonly string[] = ['steered', 'merged', 'superseded'] satisfies TakenOver[];

/** The status of a task as people need it: waiting for them, or without a worker, comes before `running`. */
export function shownStatus(task: TaskSummary): ShownStatus {
  if (isLost(task)) return 'lost';
  if (task.status === 'running' && (task.waiting ?? 0) > 0) return 'waiting';
  const kind = task.outcome?.reason?.kind ?? '';
  if (task.startedAt === undefined && TAKEN_OVER.includes(kind)) return kind as TakenOver;
  return task.status;
}

/** Whether the worker of a task died and no other has taken it. */
function isLost({ status, stage, crashes, activity }: TaskSummary): boolean {
  const isKept = stage === 'held' || stage === 'parked' || activity?.providerWait !== undefined;
  return (status === 'running' || status === 'cancelling' || status === 'init') && !isKept && crashes > 0;
}

/** Says why a task waits for the provider of its model, and until when; `undefined` if it does not. */
export function describeProviderWait({ status, activity, stageAt = 0 }: TaskSummary): string | undefined {
  const { providerWait } = activity ?? {};
  if (providerWait === undefined || status !== 'init') return undefined;
  return `Waiting for the provider: ${providerWait.error}, next try ${formatClock(stageAt)}`;
}

export function isLive({ status }: Pick<TaskSummary, 'status'>): boolean {
  return status === 'init' || status === 'running' || status === 'cancelling';
}

/** The status of a call as a shape. */
export function shownCallStatus({ state, result }: CallModel): ShownStatus {
  if (state === 'planned') return 'not-started';
  return state === 'finished' && result?.isError ? 'failed' : state;
}

/** What a status is called. */
export const STATUS_LABELS: Readonly<Record<ShownStatus, string>> = {
  init: 'queued',
  running: 'running',
  waiting: 'waiting approval',
  cancelling: 'stopping',
  cancelled: 'stopped',
  success: 'success',
  failed: 'failed',
  lost: 'lost',
  finished: 'finished',
  interrupted: 'interrupted',
  'not-started': 'not started',
  unknown: 'unknown',
  undone: 'undone',
  steered: 'steered',
  merged: 'merged',
  superseded: 'superseded',
};
