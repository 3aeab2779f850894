import { type CancelOptions, type CancelReason, type CancelReasonInit, createReason } from '@whoa/core';
import { isFinal } from '../status.ts';
import type { SendReceipt, StoreCancelReceipt } from '../store.ts';
import { COMMANDS_MAX } from '../store.ts';
import type { Command, ConversationRef, TaskRecord, TaskRef } from '../task.ts';
import { endUnstarted, leaveLine } from './line.ts';
import { levelAt, orderStop } from './stop-order.ts';
import { hintOf, type Tables } from './tables.ts';

interface CancelAsked extends CancelOptions {
  readonly reason: CancelReasonInit;
}

/** Asks a task to stop. One that never started has ended with the answer. */
export function cancelMove(tables: Tables, asked: CancelAsked & { task: TaskRef }, now: number): StoreCancelReceipt {
  const task = tables.task(asked.task.id);
  if (task === undefined || task.tenant !== asked.task.tenant) return { answer: 'unknown' };
  return cancelTask(task, { ...asked, reason: createReason(asked.reason, now) }, { tables, now });
}

/** Asks the current task of a conversation to stop, and ends everything that waits. */
export function cancelConversationMove(
  tables: Tables,
  asked: CancelAsked & { conversation: ConversationRef },
  now: number,
): StoreCancelReceipt {
  const line = tables.conversation(asked.conversation);
  const ids = line === undefined ? [] : [...(line.gathering ? [line.gathering] : []), ...line.waiting];
  const reason = createReason(asked.reason, now);
  let receipt: StoreCancelReceipt = { answer: 'unknown' };
  // The current one last: as long as it lives, nobody's turn comes.
  for (const id of [...ids, ...(line?.current === undefined ? [] : [line.current])]) {
    receipt = cancelTask(tables.task(id)!, { ...asked, reason }, { tables, now });
  }
  return receipt;
}

function cancelTask(
  task: TaskRecord,
  { reason, how = 'graceful', undo = false }: CancelOptions & { reason: CancelReason },
  context: { tables: Tables; now: number },
): StoreCancelReceipt {
  if (isFinal(task.status)) return { answer: 'too-late', status: task.status };
  if (task.status === 'init') {
    const { status } = endUnstarted(task, reason, context);
    leaveLine(task, context);
    return { answer: 'accepted', status, level: 'drain', reason, killAt: context.now };
  }
  const { answer, stop } = orderStop(task, reason, { ...context, how, undo });
  const level = levelAt(stop, context.now);
  return { answer, status: 'cancelling', level, reason: stop.reason, killAt: stop.killAt };
}

/** Leaves the worker of a task something to do. */
export function sendMove(
  tables: Tables,
  { task: ref, command, nonce }: { task: TaskRef; command: Command; nonce: string },
): SendReceipt {
  const task = tables.task(ref.id);
  if (task === undefined || task.tenant !== ref.tenant) return { answer: 'unknown' };
  // Ask this first: it may have been carried out since, and the task may have ended.
  const sent = tables.sent(ref.id, nonce);
  if (sent !== undefined) return { answer: 'accepted', number: sent };
  if (task.status !== 'init' && task.status !== 'running') return { answer: 'too-late', status: task.status };
  if (task.commands.length >= COMMANDS_MAX) return { answer: 'full' };
  const number = task.commandsSent + 1;
  const told = { ...task, commands: [...task.commands, { ...command, number }], commandsSent: number };
  tables.saveTask(told);
  tables.saveSent(task.id, { nonce, number });
  tables.tell(hintOf('command', told));
  return { answer: 'accepted', number };
}
