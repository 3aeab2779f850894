import { createReason } from '@whoa/core';
import { isFinal, move } from '../status.ts';
import type { Claim, Orders } from '../store.ts';
import { isWatched, type TaskRecord } from '../task.ts';
import { admit, endUnstarted, leaveLine, lineOf } from './line.ts';
import { hintOf, type Moment, type Tables } from './tables.ts';

/** Takes a task that is nobody's. */
export function claimMove(
  tables: Tables,
  { id, worker, leaseMs }: { id: string; worker: string; leaseMs: number },
  moment: Moment,
): Claim {
  const { now } = moment;
  const found = tables.task(id);
  if (found === undefined) return { answer: 'unknown' };
  if (found.held !== undefined && now < found.held.until) return { answer: 'waiting', until: found.held.until };
  const task = found.held === undefined ? found : admitHeld(found, found.held.policy, { ...moment, tables });
  if (isFinal(task.status)) return { answer: 'too-late', status: task.status };
  if (task.waiting) return { answer: 'waiting' };
  if (task.leaseUntil !== undefined && now < task.leaseUntil) return { answer: 'held', until: task.leaseUntil };
  if (task.status === 'running' && task.attempts >= moment.attemptsMax) return giveUp(task, tables, moment);
  const leaseUntil = now + leaseMs;
  const claimed: TaskRecord = {
    ...task,
    status: move(task.status, 'claim').status,
    epoch: task.epoch + 1,
    attempts: task.attempts + 1,
    worker,
    leaseUntil,
    dueAt: leaseUntil,
    startedAt: task.startedAt ?? now,
  };
  tables.saveTask(claimed);
  tables.tell(hintOf('status', claimed));
  const { tenant, conversation } = claimed;
  const history = conversation === undefined ? [] : tables.history({ tenant, conversation });
  return { answer: 'claimed', task: claimed, orders: ordersFor(claimed, now), history };
}

/** The time to wait for more messages is over: the task does what its policy says. */
function admitHeld(
  task: TaskRecord,
  policy: NonNullable<TaskRecord['held']>['policy'],
  context: Moment & { tables: Tables },
): TaskRecord {
  const { tables, now } = context;
  const { gathering: _gathering, ...line } = lineOf(task, tables)!;
  tables.saveConversation(line);
  const { held: _held, ...freed } = task;
  const receipt = admit(freed, policy, context);
  if (receipt.answer !== 'rejected') return receipt.task;
  const reason = createReason({ kind: 'rejected', message: 'another task of the conversation was under way' }, now);
  return endUnstarted(task, reason, { tables, now });
}

/** Its workers keep dying: the task is to blame, or nobody can tell. The epoch moves on, so the last one is fenced too. */
function giveUp(task: TaskRecord, tables: Tables, { now, attemptsMax }: Moment): Claim {
  const { leaseUntil: _leaseUntil, dueAt: _dueAt, ...rest } = task;
  const message = `its workers were lost ${attemptsMax} times`;
  const failed: TaskRecord = {
    ...rest,
    status: 'failed',
    epoch: task.epoch + 1,
    endedAt: now,
    commands: [],
    outcome: { status: 'failed', error: { message, code: 'WORKERS_LOST' } },
  };
  tables.saveTask(failed);
  tables.tell(hintOf('status', failed));
  leaveLine(failed, { tables, now });
  return { answer: 'too-late', status: 'failed' };
}

/** Everything the worker of a task should know. */
export function ordersFor(task: TaskRecord, now: number): Orders {
  const { leaseUntil = now, stop, commands } = task;
  return { now, leaseUntil, ...(stop !== undefined && { stop }), commands, watched: isWatched(task, now) };
}
