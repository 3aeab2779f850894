/** How a task ended. */
export type FinalStatus = 'success' | 'failed' | 'cancelled';

/**
 * The status of a task. From `cancelling` only `cancelled` is possible: an accepted cancel always ends as `cancelled`,
 * and `cancelled` means that the work has stopped.
 */
export type TaskStatus = 'init' | 'running' | 'cancelling' | FinalStatus;

/** What can be done to a task. A finish is named by the final status it asks for. */
export type StatusAction = 'claim' | 'release' | 'cancel' | FinalStatus;

/**
 * Why a transition is rejected.
 *
 * - `not-running`: no worker has claimed the task.
 * - `held`: a worker has claimed the task.
 * - `final`: the task has ended.
 */
export type StatusRefusal = 'not-running' | 'held' | 'final';

export type NextStatus =
  | { readonly moved: true; readonly status: TaskStatus }
  | { readonly moved: false; readonly refused: StatusRefusal; readonly status: TaskStatus };

const ENDED = {
  claim: 'final',
  release: 'final',
  cancel: 'final',
  success: 'final',
  failed: 'final',
  cancelled: 'final',
};

/** Every status and every action: the next status, or why the action is rejected. */
export const STATUS_TABLE: Readonly<Record<TaskStatus, Readonly<Record<StatusAction, TaskStatus | StatusRefusal>>>> = {
  init: {
    claim: 'running',
    release: 'not-running',
    cancel: 'cancelled',
    success: 'not-running',
    failed: 'not-running',
    cancelled: 'not-running',
  },
  running: {
    claim: 'held',
    release: 'init',
    cancel: 'cancelling',
    success: 'success',
    failed: 'failed',
    cancelled: 'cancelled',
  },
  cancelling: {
    claim: 'cancelling',
    release: 'cancelling',
    cancel: 'cancelling',
    success: 'cancelled',
    failed: 'cancelled',
    cancelled: 'cancelled',
  },
  success: ENDED as Record<StatusAction, StatusRefusal>,
  failed: ENDED as Record<StatusAction, StatusRefusal>,
  cancelled: ENDED as Record<StatusAction, StatusRefusal>,
};

/** The only function that decides what an action does to a status. Leases and epochs are checked before. */
export function nextStatus(status: TaskStatus, asked: StatusAction): NextStatus {
  const next = STATUS_TABLE[status][asked];
  return isRefusal(next) ? { moved: false, refused: next, status } : { moved: true, status: next };
}

/** One value for each status. */
export function byStatus<T>(toValue: (status: TaskStatus) => T): Readonly<Record<TaskStatus, T>> {
  const entries = (Object.keys(STATUS_TABLE) as TaskStatus[]).map((status) => [status, toValue(status)] as const);
  return Object.fromEntries(entries) as Record<TaskStatus, T>;
}

/**
 * Checks whether a task has ended. Its record never changes after that.
 *
 * @returns True for `success`, `failed` and `cancelled`.
 */
export function isFinalStatus(status: TaskStatus): status is FinalStatus {
  return STATUS_TABLE[status] === STATUS_TABLE.success;
}

function isRefusal(next: TaskStatus | StatusRefusal): next is StatusRefusal {
  return next === 'not-running' || next === 'held' || next === 'final';
}
