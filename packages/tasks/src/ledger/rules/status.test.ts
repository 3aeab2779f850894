import { expect, test } from 'vitest';
import { isFinalStatus, nextStatus, STATUS_TABLE, type StatusAction, type TaskStatus } from './status.ts';

const STATUSES = Object.keys(STATUS_TABLE) as TaskStatus[];
const ACTIONS = Object.keys(STATUS_TABLE.init) as StatusAction[];

/** Every status that a task may reach from this one, by any sequence of actions. */
function reachableFrom(start: TaskStatus): Set<TaskStatus> {
  const reached = new Set([start]);
  for (const status of reached) for (const action of ACTIONS) reached.add(nextStatus(status, action).status);
  return reached;
}

test('every task can end as success, failed or cancelled, and what has ended stays so', () => {
  expect(STATUSES.filter(isFinalStatus)).toEqual(['success', 'failed', 'cancelled']);
  expect(reachableFrom('init')).toEqual(new Set(STATUSES));
  for (const status of STATUSES) {
    if (isFinalStatus(status)) expect(reachableFrom(status)).toEqual(new Set([status]));
    else expect([...reachableFrom(status)].some(isFinalStatus)).toBe(true);
  }
});

test('an accepted cancel always ends as cancelled, whatever else is done to the task', () => {
  for (const status of STATUSES) {
    const cancelled = nextStatus(status, 'cancel');
    if (!cancelled.moved) expect(isFinalStatus(status)).toBe(true);
    else expect([...reachableFrom(cancelled.status)].filter(isFinalStatus)).toEqual(['cancelled']);
    expect(nextStatus(cancelled.status, 'cancel').status).toBe(cancelled.status);
  }
});

test('only a running task ends as success or failed', () => {
  for (const end of ['success', 'failed'] as const) {
    const from = STATUSES.filter((status) => !isFinalStatus(status) && nextStatus(status, end).status === end);
    expect(from).toEqual(['running']);
  }
});

test('a claimed task has one worker, and only that worker can release or finish it', () => {
  const claimed = nextStatus('init', 'claim');
  expect(claimed).toEqual({ moved: true, status: 'running' });
  expect(nextStatus('running', 'claim')).toEqual({ moved: false, refused: 'held', status: 'running' });
  expect(nextStatus('running', 'release')).toEqual({ moved: true, status: 'init' });
  for (const action of ACTIONS.filter((one) => one !== 'claim' && one !== 'cancel')) {
    expect(nextStatus('init', action)).toEqual({ moved: false, refused: 'not-running', status: 'init' });
  }
});
