import { type CancelReason, createReason, type Policy, WAITING_MAX } from '@whoa/core';
import type { CreateReceipt } from '../store.ts';
import { COMMANDS_MAX } from '../store.ts';
import type { ConversationRef, TaskRecord } from '../task.ts';
import { orderStop } from './stop-order.ts';
import { hintOf, type Line, type Moment, type Tables } from './tables.ts';

/** A worker that created a task has this long to take it before others look. */
const HOME_MS = 5_000;

/** The line of tasks in a task's conversation; `undefined` if it has none. */
export function lineOf(task: Pick<TaskRecord, 'tenant' | 'conversation'>, tables: Tables): Line | undefined {
  const { tenant, conversation } = task;
  return conversation === undefined ? undefined : openLine({ tenant, conversation }, tables);
}

function openLine(ref: ConversationRef, tables: Tables): Line {
  return tables.conversation(ref) ?? { ...ref, waiting: [], changedAt: 0 };
}

/** Lets a task into its conversation: it is next, waits, is given to the current one as a message, or is refused. */
export function admit(task: TaskRecord, policy: Policy, { tables, now }: Moment & { tables: Tables }): CreateReceipt {
  const line = lineOf(task, tables)!;
  const current = line.current === undefined ? undefined : tables.task(line.current)!;
  if (current === undefined) return enter(ready(task, now), { ...line, current: task.id, changedAt: now }, tables);
  if (policy === 'replace') return supersede(task, { line, current, tables, now });
  if (policy === 'reject' || line.waiting.length >= WAITING_MAX) return { answer: 'rejected' };
  const waits = waitingFor(task);
  if (policy === 'steer' && current.stop === undefined && current.commands.length < COMMANDS_MAX) {
    const steered = giveTo(current, task, tables);
    const ahead = line.waiting.filter((id) => steered.has(id));
    const behind = line.waiting.filter((id) => !steered.has(id));
    const given = { ...waits, steered: current.id };
    return enter(given, { ...line, waiting: [...ahead, task.id, ...behind], changedAt: now }, tables);
  }
  return enter(waits, { ...line, waiting: [...line.waiting, task.id], changedAt: now }, tables);
}

function enter(task: TaskRecord, line: Line, tables: Tables): CreateReceipt {
  tables.saveTask(task);
  tables.saveConversation(line);
  tables.tell(hintOf('status', task));
  return receiptFor(task);
}

/** What whoever created a task is told. */
export function receiptFor(task: TaskRecord): CreateReceipt & { answer: 'created' } {
  const { superseded = [], steered } = task;
  return { answer: 'created', task, superseded, ...(steered !== undefined && { steered }) };
}

function supersede(
  task: TaskRecord,
  { line, current, tables, now }: { line: Line; current: TaskRecord; tables: Tables; now: number },
): CreateReceipt {
  const reason = createReason({ kind: 'superseded', message: 'a newer message arrived' }, now);
  for (const id of line.waiting) endUnstarted(tables.task(id)!, reason, { tables, now });
  const newest = { ...task, superseded: [...line.waiting, current.id] };
  if (current.status === 'init') {
    endUnstarted(current, reason, { tables, now });
    return enter(ready(newest, now), { ...line, current: task.id, waiting: [], changedAt: now }, tables);
  }
  orderStop(current, reason, { tables, now, how: 'graceful', undo: false });
  return enter(waitingFor(newest), { ...line, waiting: [task.id], changedAt: now }, tables);
}

/** A task whose turn comes later. Nobody need look at it before: whoever is current wakes it. */
function waitingFor(task: TaskRecord): TaskRecord {
  const { dueAt: _dueAt, ...rest } = task;
  return { ...rest, waiting: true };
}

/** Gives the current task the message; answers which waiting tasks are such messages. */
function giveTo(current: TaskRecord, task: TaskRecord, tables: Tables): ReadonlySet<string> {
  const number = current.commandsSent + 1;
  const steer = { type: 'steer' as const, message: task.inputs.at(-1)!, task: task.id, number };
  const earlier = current.commands.flatMap((command) => (command.type === 'steer' ? [command.task ?? ''] : []));
  const told = { ...current, commands: [...current.commands, steer], commandsSent: number };
  tables.saveTask(told);
  tables.tell(hintOf('command', told));
  return new Set(earlier);
}

/** Takes an ended or withdrawn task out of its conversation. Answers whose turn it is, if that changed. */
export function leaveLine(task: TaskRecord, { tables, now }: { tables: Tables; now: number }): string | undefined {
  const line = lineOf(task, tables);
  if (line === undefined) return undefined;
  const { gathering, current, ...rest } = line;
  const waiting = line.waiting.filter((id) => id !== task.id);
  const kept = { ...rest, ...(gathering !== undefined && gathering !== task.id && { gathering }), changedAt: now };
  if (current !== task.id) {
    tables.saveConversation({ ...kept, waiting, ...(current !== undefined && { current }) });
    return undefined;
  }
  const [successor, ...others] = waiting;
  tables.saveConversation({ ...kept, waiting: others, ...(successor !== undefined && { current: successor }) });
  if (successor === undefined) return undefined;
  const woken = ready(tables.task(successor)!, now);
  tables.saveTask(woken);
  tables.tell(hintOf('wake', woken));
  return successor;
}

/** A task whose turn it is. Others look at it too, but not before its own worker had a chance. */
export function ready(task: TaskRecord, now: number): TaskRecord {
  const { waiting: _waiting, held: _held, ...rest } = task;
  return { ...rest, dueAt: task.worker === undefined ? now : now + HOME_MS };
}

/** Ends a task that never ran. It does not leave its conversation: that is for the caller to do. */
export function endUnstarted(
  task: TaskRecord,
  reason: CancelReason,
  { tables, now }: { tables: Tables; now: number },
): TaskRecord {
  const { dueAt: _dueAt, waiting: _waiting, held: _held, ...rest } = task;
  const outcome = { status: 'cancelled' as const, reason };
  const ended: TaskRecord = { ...rest, status: 'cancelled', endedAt: now, commands: [], outcome };
  tables.saveTask(ended);
  tables.tell(hintOf('status', ended));
  return ended;
}
