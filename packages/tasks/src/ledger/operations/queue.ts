import type { CancelReason, Policy } from '@whoa/core';
import { createReason } from '@whoa/core/embed';
import type { CreateReceipt } from '../../store.ts';
import type { ConversationRef } from '../../task.ts';
import { ADMISSION_TABLE, type CurrentState, GRACEFUL, LIMITS } from '../rules/rules.ts';
import { applyTransition } from '../rules/transitions.ts';
import { tellConversation } from './feed.ts';
import { closeOpen } from './questions.ts';
import { end, promote, sendOrder } from './stage.ts';
import { orderStop } from './stop-order.ts';
import type { Conversation, OperationContext, StoredTask, Tables } from './tables.ts';
import { toHint, toRecord } from './views.ts';

/** Returns the conversation of a task; `undefined` if it has none. */
export function findTaskConversation(
  { tenant, conversation }: Pick<StoredTask, 'tenant' | 'conversation'>,
  tables: Tables,
): Conversation | undefined {
  return conversation === undefined ? undefined : openConversation({ tenant, conversation }, tables);
}

function openConversation(ref: ConversationRef, tables: Tables): Conversation {
  return tables.conversation(ref) ?? { ...ref, waiting: [], historyBytes: 0, changedAt: 0 };
}

/** The `inputOwner` of a task that passed its inputs on. */
const NO_INPUTS = '';

/** Admits a task to its conversation: it is next, waits, is passed to the current task as a message, or is rejected. */
export function admit(task: StoredTask, policy: Policy, context: OperationContext): CreateReceipt {
  const { tables, now } = context;
  const conversation = findTaskConversation(task, tables)!;
  const current = conversation.current === undefined ? undefined : tables.task(conversation.current)!;
  const state = current === undefined ? 'none' : (current.status as CurrentState);
  const admission = ADMISSION_TABLE[policy][state];
  if (current === undefined || admission === 'start') {
    tables.saveConversation({ ...conversation, current: task.id, changedAt: now });
    return receiptFor(announced(promote(task, context), tables), tables);
  }
  if (admission === 'replace') return replace(task, { conversation, current }, context);
  if (admission === 'reject' || conversation.waiting.length >= LIMITS.maxQueued) return { result: 'rejected' };
  const isSame = current.context === task.context;
  const isKeeping = task.keepsQuestions === true && (current.questionCounts?.open ?? 0) > 0;
  const isSteered = admission === 'steer' && isSame && !isKeeping && current.commands.length < LIMITS.maxCommands;
  // The user wrote instead of answering. A task that starts later is not a message of now.
  const isLater = (task.notBefore ?? 0) > now;
  const present = isLater || isKeeping ? current : closeOpen(current, 'withdrawn', context);
  if (!isSteered && present !== current) sendOrder(present, 'command', context);
  const last = admission === 'merge' ? tables.task(conversation.waiting.at(-1) ?? '') : undefined;
  if (last !== undefined && canMerge(last, task, tables)) return merge(task, { conversation, last }, context);
  if (!isSteered) return enqueue(task, { conversation, waiting: [...conversation.waiting, task.id] }, context);
  const earlier = steer(present, task, context);
  const ahead = conversation.waiting.filter((id) => earlier.has(id));
  const behind = conversation.waiting.filter((id) => !earlier.has(id));
  const waiting = [...ahead, task.id, ...behind];
  return enqueue({ ...task, steered: current.id }, { conversation, waiting }, context);
}

function canMerge(last: StoredTask, task: StoredTask, tables: Tables): boolean {
  const isAlike = last.agent === task.agent && last.context === task.context;
  const count = tables.inputsCount(last.inputOwner) + tables.inputsCount(task.inputOwner);
  // A message that was passed to the current task may be read there.
  return isAlike && last.steered === undefined && count <= LIMITS.maxDebounced;
}

function merge(
  task: StoredTask,
  { conversation, last }: { conversation: Conversation; last: StoredTask },
  context: OperationContext,
): CreateReceipt {
  const inputOwner = endMerged(last, task, context);
  context.tables.moveInputs(task.inputOwner, inputOwner);
  const waiting = [...conversation.waiting.slice(0, -1), task.id];
  return enqueue({ ...task, inputOwner }, { conversation, waiting }, context);
}

/** Ends a task whose messages a newer one takes over. They are passed on, not copied: returns their owner. */
export function endMerged(task: StoredTask, newer: StoredTask, context: OperationContext): string {
  const reason = createReason({ kind: 'merged', message: `taken over by ${newer.id}` }, context.now);
  endUnstarted({ ...task, inputOwner: NO_INPUTS }, reason, context);
  if (task.inputOwner !== task.id) return task.inputOwner;
  // Not its id: that belongs to another task once this one is removed and its key is used again.
  const owner = crypto.randomUUID();
  context.tables.moveInputs(task.id, owner);
  return owner;
}

/** Queues a task. No worker needs to look at it until the end of the task before it makes it ready. */
function enqueue(
  task: StoredTask,
  { conversation, waiting }: { conversation: Conversation; waiting: readonly string[] },
  { tables, now }: OperationContext,
): CreateReceipt {
  const queued = applyTransition(task, 'queue', { now });
  tables.saveTask(queued);
  tables.saveConversation({ ...conversation, waiting, changedAt: now });
  return receiptFor(announced(queued, tables), tables);
}

function announced(task: StoredTask, tables: Tables): StoredTask {
  tables.notify(toHint('status', task));
  return task;
}

/** Returns the receipt for the creator of a task. */
export function receiptFor(task: StoredTask, tables: Tables): CreateReceipt & { result: 'created' } {
  const { superseded = [], steered } = task;
  return { result: 'created', task: toRecord(task, tables), superseded, ...(steered !== undefined && { steered }) };
}

function replace(
  task: StoredTask,
  { conversation, current }: { conversation: Conversation; current: StoredTask },
  context: OperationContext,
): CreateReceipt {
  const { tables, now } = context;
  const reason = createReason({ kind: 'superseded', message: 'a newer message arrived' }, now);
  for (const id of conversation.waiting) endUnstarted(tables.task(id)!, reason, context);
  const newest = { ...task, superseded: [...conversation.waiting, current.id] };
  if (hasStarted(current)) {
    orderStop(current, { ...GRACEFUL, undo: false, reason }, context);
    return enqueue(newest, { conversation, waiting: [task.id] }, context);
  }
  endUnstarted(current, reason, context);
  tables.saveConversation({ ...conversation, current: task.id, waiting: [], changedAt: now });
  return receiptFor(announced(promote(newest, context), tables), tables);
}

/** Returns whether a task may have had effects. Then it must be settled, not just ended. */
export function hasStarted({ status, position }: StoredTask): boolean {
  return status !== 'init' || position > 0;
}

/** Passes the message to the current task. Returns which waiting tasks are such messages. */
function steer(current: StoredTask, task: StoredTask, context: OperationContext): ReadonlySet<string> {
  const number = current.commandsSent + 1;
  const message = context.tables.inputs(task.inputOwner).at(-1)!;
  const command = { type: 'steer' as const, message, task: task.id, number };
  const earlier = current.commands.flatMap((one) => (one.type === 'steer' ? [one.task ?? ''] : []));
  sendOrder({ ...current, commands: [...current.commands, command], commandsSent: number }, 'command', context);
  return new Set(earlier);
}

/** Removes an ended task from its conversation. Returns the next task, if that changed. */
export function leaveConversation(task: StoredTask, context: OperationContext): string | undefined {
  const { tables, now } = context;
  const conversation = findTaskConversation(task, tables);
  if (conversation === undefined) return undefined;
  const { debouncing, current, ...rest } = conversation;
  const waiting = conversation.waiting.filter((id) => id !== task.id);
  const kept = { ...rest, ...(debouncing !== undefined && debouncing !== task.id && { debouncing }), changedAt: now };
  tellConversation(conversation, context);
  if (current !== task.id) {
    tables.saveConversation({ ...kept, waiting, ...(current !== undefined && { current }) });
    return undefined;
  }
  const [successor, ...others] = waiting;
  tables.saveConversation({ ...kept, waiting: others, ...(successor !== undefined && { current: successor }) });
  if (successor !== undefined) promote(tables.task(successor)!, context);
  return successor;
}

/** Ends a task that never started. The caller must remove it from its conversation. */
export function endUnstarted(task: StoredTask, reason: CancelReason, context: OperationContext): StoredTask {
  return end(task, { status: 'cancelled', reason }, context);
}
