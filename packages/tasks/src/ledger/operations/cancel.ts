import type { CancelReason } from '@whoa/core';
import { createReason } from '@whoa/core/embed';
import type { SendReceipt, StoreCancelReceipt } from '../../store.ts';
import type { ConversationRef, TaskCommand, TaskRef } from '../../task.ts';
import type { StopRequest } from '../driver.ts';
import { isDue, isOverdue } from '../rules/questions.ts';
import { GRACEFUL, LIMITS, OVERDUE } from '../rules/rules.ts';
import { isFinalStatus } from '../rules/status.ts';
import { closeOpen } from './questions.ts';
import { endUnstarted, hasStarted, leaveConversation } from './queue.ts';
import { sendOrder } from './stage.ts';
import { levelAt, orderStop } from './stop-order.ts';
import type { OperationContext, StoredTask } from './tables.ts';

/** Asks a task to stop. A task that never started ends immediately. */
export function applyCancel(ref: TaskRef, stop: StopRequest, context: OperationContext): StoreCancelReceipt {
  const task = context.tables.task(ref.id);
  if (task === undefined || task.tenant !== ref.tenant) return { result: 'not-found' };
  return cancelTask(applyDeadline(task, context), dated(stop, context), context);
}

/** Asks the current task of a conversation to stop, and ends all waiting tasks. */
export function applyCancelConversation(
  ref: ConversationRef,
  stop: StopRequest,
  context: OperationContext,
): StoreCancelReceipt {
  const { tables } = context;
  const conversation = tables.conversation(ref);
  const { debouncing, waiting = [], current } = conversation ?? {};
  const asked = dated(stop, context);
  let receipt: StoreCancelReceipt = { result: 'not-found' };
  // Cancel the current task last: while it is live, no other task can start.
  for (const id of [debouncing, ...waiting, current]) {
    if (id !== undefined) receipt = cancelTask(applyDeadline(tables.task(id)!, context), asked, context);
  }
  return receipt;
}

type DatedStop = StopRequest & { readonly reason: CancelReason };

function dated(stop: StopRequest, { now }: OperationContext): DatedStop {
  return { ...stop, reason: createReason(stop.reason, now) };
}

function cancelTask(task: StoredTask, asked: DatedStop, context: OperationContext): StoreCancelReceipt {
  const { now } = context;
  if (isFinalStatus(task.status)) return { result: 'too-late', status: task.status };
  if (!hasStarted(task)) {
    withdrawSteer(task, context);
    leaveConversation(endUnstarted(task, asked.reason, context), context);
    return { result: 'accepted', status: 'cancelled', level: 'drain', reason: asked.reason, killAt: now };
  }
  const { result, stop } = orderStop(task, asked, context);
  return { result, status: 'cancelling', level: levelAt(stop, now), reason: stop.reason, killAt: stop.killAt };
}

/** Makes what is due about a task happen before anything else does. Returns what the task is then. */
export function applyDue(task: StoredTask, context: OperationContext): StoredTask {
  if (!isDue(task, context.now) || isOverdue(task, context.now)) return applyDeadline(task, context);
  return sendOrder(closeOpen(task, 'expired', context), 'command', context);
}

/** Cancels a task past its deadline that no worker holds. Its questions close with it. */
function applyDeadline(task: StoredTask, context: OperationContext): StoredTask {
  const { tables, now } = context;
  if (!isOverdue(task, now)) return task;
  cancelTask(task, { ...GRACEFUL, undo: false, reason: createReason(OVERDUE, now) }, context);
  return tables.task(task.id)!;
}

/** Makes what is due happen, of whichever task no one has looked at. Returns whether there are more. */
export function applyDueTasks(
  findFirst: (now: number) => StoredTask | undefined,
  limit: number,
  context: OperationContext,
): boolean {
  let first = findFirst(context.now);
  for (let looked = 0; first !== undefined && looked < limit; looked++) {
    applyDue(first, context);
    first = findFirst(context.now);
  }
  return first !== undefined;
}

/** Withdraws the task's message from the current task if it has not read it yet. */
function withdrawSteer({ id, steered }: StoredTask, context: OperationContext): void {
  const reader = steered === undefined ? undefined : context.tables.task(steered);
  const commands = reader?.commands.filter((one) => one.type !== 'steer' || one.task !== id) ?? [];
  if (reader !== undefined && commands.length < reader.commands.length) {
    sendOrder({ ...reader, commands }, 'command', context);
  }
}

/** Sends a command to the worker of a task. */
export function applySend(
  ref: TaskRef,
  command: TaskCommand,
  { nonce, ...context }: OperationContext & { nonce: string },
): SendReceipt {
  const { tables } = context;
  const task = tables.task(ref.id);
  if (task === undefined || task.tenant !== ref.tenant) return { result: 'not-found' };
  // Check this first: since the first request, the command may have been carried out and the task may have ended.
  const sent = tables.findCommandNumber(ref.id, nonce);
  if (sent !== undefined) return { result: 'accepted', number: sent };
  if (task.status !== 'init' && task.status !== 'running') return { result: 'too-late', status: task.status };
  if (task.commands.length >= LIMITS.maxCommands) return { result: 'full' };
  const number = task.commandsSent + 1;
  // The user wrote instead of answering.
  const present = command.type === 'steer' ? closeOpen(task, 'withdrawn', context) : task;
  const commands = [...task.commands, { ...command, number }];
  sendOrder({ ...present, commands, commandsSent: number }, 'command', context);
  tables.saveCommandNonce(task.id, { nonce, number });
  return { result: 'accepted', number };
}
