/** How a task ended. */
export type FinalStatus = 'success' | 'failed' | 'cancelled';

/**
 * Where a task stands. `cancelling` seals its fate: from there only `cancelled` is possible, so a cancel that was
 * accepted is a cancel, and `cancelled` means settled.
 */
export type TaskStatus = 'init' | 'running' | 'cancelling' | FinalStatus;

/** What can be done to a task. A finish is named by the end it asks for. */
export type StatusAction = 'claim' | 'release' | 'cancel' | FinalStatus;

/**
 * Why a move is refused.
 *
 * - `not-running`: no worker has claimed it.
 * - `held`: a worker has claimed it.
 * - `final`: it has ended.
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

/** Every status and every move: where it leads, or why it does not. */
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

/** The one place that decides what a move does to a status. Leases and epochs are checked before. */
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
 * Tells whether a task has ended: its record never changes again.
 *
 * @returns True for `success`, `failed` and `cancelled`.
 */
export function isFinalStatus(status: TaskStatus): status is FinalStatus {
  return STATUS_TABLE[status] === STATUS_TABLE.success;
}

function isRefusal(next: TaskStatus | StatusRefusal): next is StatusRefusal {
  return next === 'not-running' || next === 'held' || next === 'final';
}
