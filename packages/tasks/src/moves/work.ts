import { createReason } from '@whoa/core';
import { JournalFullError, JournalGapError, LeaseLostError } from '../errors.ts';
import { isFinal, move } from '../status.ts';
import type { Batch, FinishReceipt, Orders, ReleaseReceipt } from '../store.ts';
import type { JournalEntry, TaskOutcome, TaskRecord } from '../task.ts';
import { ordersFor } from './claim.ts';
import { endUnstarted, leaveLine, ready } from './line.ts';
import { hintOf, type Tables } from './tables.ts';

/** Which claim speaks. */
export interface Claimant {
  readonly id: string;
  readonly epoch: number;
}

export function renewMove(tables: Tables, by: Claimant & { leaseMs: number }, now: number): Orders {
  const task = ownTask(tables, by);
  // A lease never gets shorter: a late renewal must not take back time that was promised.
  const leaseUntil = Math.max(now + by.leaseMs, task.leaseUntil ?? 0);
  const renewed = { ...task, leaseUntil, dueAt: leaseUntil };
  tables.saveTask(renewed);
  return ordersFor(renewed, now);
}

export function appendMove(
  tables: Tables,
  by: Claimant & { batch: Batch; journalBytesMax: number },
  now: number,
): Orders {
  const task = ownTask(tables, by);
  const { after, events, replaces = [], done = [] } = by.batch;
  const alreadyThere = events.length > 0 && task.position === after + events.length;
  if (!alreadyThere && task.position !== after) throw new JournalGapError(task.id, task.position, after);
  const entries = alreadyThere
    ? []
    : events.map((event, index) => ({ position: after + index + 1, epoch: by.epoch, at: now, event }));
  const position = task.position + entries.length;
  const journalBytes = bytesAfter(task, { entries, replaces, tables });
  if (journalBytes > Math.max(by.journalBytesMax, task.journalBytes)) {
    throw new JournalFullError(task.id, task.journalBytes, by.journalBytesMax);
  }
  const commands = task.commands.filter(({ number }) => !done.includes(number));
  if (replaces.length > 0) tables.removeEntries(task.id, replaces);
  if (entries.length > 0) tables.addEntries(task.id, entries);
  const appended = { ...task, position, journalBytes, commands };
  tables.saveTask(appended);
  if (entries.length > 0) tables.tell(hintOf('journal', appended));
  endSteered(task, done, { tables, now });
  return ordersFor(appended, now);
}

function bytesAfter(
  task: TaskRecord,
  { entries, replaces, tables }: { entries: readonly JournalEntry[]; replaces: readonly number[]; tables: Tables },
): number {
  let bytes = task.journalBytes - (replaces.length > 0 ? tables.bytesOf(task.id, replaces) : 0);
  for (const { event } of entries) bytes += Buffer.byteLength(JSON.stringify(event));
  return bytes;
}

/** A message that the current task has read needs no task of its own. */
function endSteered(task: TaskRecord, done: readonly number[], context: { tables: Tables; now: number }): void {
  for (const command of task.commands) {
    if (command.type !== 'steer' || command.task === undefined || !done.includes(command.number)) continue;
    const waiting = context.tables.task(command.task);
    if (waiting?.status !== 'init') continue;
    endUnstarted(waiting, createReason({ kind: 'steered', message: `answered by ${task.id}` }, context.now), context);
    leaveLine(waiting, context);
  }
}

export function releaseMove(tables: Tables, by: Claimant, now: number): ReleaseReceipt {
  const task = tables.task(by.id);
  if (task?.status === 'init' && task.epoch === by.epoch) return { answer: 'already' };
  const own = ownTask(tables, by);
  const { status, moved } = move(own.status, 'release');
  if (!moved) return { answer: 'sealed' };
  const { worker: _worker, leaseUntil: _leaseUntil, ...rest } = own;
  const released = ready({ ...rest, status, attempts: own.attempts - 1 }, now);
  tables.saveTask(released);
  tables.tell(hintOf('wake', released));
  return { answer: 'released' };
}

export function finishMove(tables: Tables, by: Claimant & { outcome: TaskOutcome }, now: number): FinishReceipt {
  const before = tables.task(by.id);
  if (before !== undefined && before.epoch === by.epoch && isFinal(before.status)) {
    return { answer: 'already', status: before.status };
  }
  const task = ownTask(tables, by);
  const { history, said = [], ...outcome } = by.outcome;
  const { status } = move(task.status, outcome.status);
  if (!isFinal(status)) throw new LeaseLostError(by.id, by.epoch);
  const { leaseUntil: _leaseUntil, dueAt: _dueAt, ...rest } = task;
  const ended: TaskRecord = {
    ...rest,
    status,
    endedAt: now,
    commands: [],
    outcome: settledOutcome(task, outcome, now),
  };
  tables.saveTask(ended);
  const { tenant, conversation } = task;
  if (conversation !== undefined) {
    if (history !== undefined) tables.clearHistory({ tenant, conversation });
    tables.addHistory({ tenant, conversation }, [...(history ?? []), ...said]);
  }
  const successor = leaveLine(ended, { tables, now });
  tables.tell(hintOf('status', ended));
  return { answer: 'finished', status, ...(successor !== undefined && { successor }) };
}

/** What the store says about an end: once a cancel was accepted it is `cancelled`, for the reason of that cancel. */
function settledOutcome(
  task: TaskRecord,
  outcome: Omit<TaskOutcome, 'history' | 'said'>,
  now: number,
): NonNullable<TaskRecord['outcome']> {
  if (task.stop === undefined && outcome.status !== 'cancelled') return outcome;
  const reason = task.stop?.reason ?? outcome.reason ?? createReason({}, now);
  return { ...outcome, status: 'cancelled', reason, complete: outcome.complete ?? outcome.status !== 'cancelled' };
}

/** The task, if the claim still holds. */
function ownTask(tables: Tables, { id, epoch }: Claimant): TaskRecord {
  const task = tables.task(id);
  if (task === undefined || task.epoch !== epoch || (task.status !== 'running' && task.status !== 'cancelling')) {
    throw new LeaseLostError(id, epoch);
  }
  return task;
}
