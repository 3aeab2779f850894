import type { Json } from '@whoa/core';
import { createReason } from '@whoa/core/embed';
import { toNewTask } from '../rules/new-task.ts';
import { LIMITS, SIZES } from '../rules/rules.ts';
import type { CreateReceipt } from '../store.ts';
import type { CreateRequest, DriverReceipt } from '../stores/driver.ts';
import { admit, conversationOf, endMerged, endUnstarted, receiptFor } from './queue.ts';
import { delayUntil, promote } from './stage.ts';
import { hintOf, type OperationContext, recordOf, type StoredTask } from './tables.ts';

/** Creates a task and admits it to its conversation, if it has one. */
export function applyCreate(request: CreateRequest, moment: OperationContext): DriverReceipt {
  const { tables, now } = moment;
  const existing = tables.task(request.id);
  if (existing !== undefined) {
    // Without a key the id is derived from the nonce, so it is the same request.
    const isRepeated = existing.key === undefined || existing.nonce === request.nonce;
    if (isRepeated) return receiptFor(existing, tables);
    return { result: 'duplicate', task: recordOf(existing, tables) };
  }
  const full = whatIsFull(request, moment);
  if (full !== undefined) return full;
  const { id, context } = request;
  const record: StoredTask = { ...toNewTask(request, now), inputOwner: id, ...(context !== '' && { context }) };
  if (request.conversation !== undefined) return createInConversation(record, request, moment);
  begin(record, request, moment);
  const task = promote(record, moment);
  tables.tell(hintOf('status', task));
  return receiptFor(task, tables);
}

function whatIsFull(request: CreateRequest, { tables, rules }: OperationContext): CreateReceipt | undefined {
  const { agent, tenant } = request;
  const limit = rules.maxReady;
  if (tables.countReady({ agent, tenant }, limit) >= limit) return { result: 'full', what: 'tasks', limit };
  const bytes = conversationOf(request as Pick<StoredTask, 'tenant' | 'conversation'>, tables)?.historyBytes ?? 0;
  return bytes > SIZES.historyBytes ? { result: 'full', what: 'history', limit: SIZES.historyBytes } : undefined;
}

function begin(task: StoredTask, { input }: CreateRequest, { tables }: OperationContext): void {
  if (task.inputOwner === task.id) tables.clear(task.id);
  tables.addInput(task.inputOwner, JSON.parse(input) as Json);
}

function createInConversation(record: StoredTask, request: CreateRequest, moment: OperationContext): CreateReceipt {
  const { tables, now } = moment;
  const { policy, debounceMs } = request;
  const conversation = conversationOf(record, tables)!;
  // Check this before joining: a rejected message must not take the accepted ones that are still held back with it.
  if (policy === 'reject' && debounceMs === 0 && conversation.current !== undefined) return { result: 'rejected' };
  const first = conversation.debouncing === undefined ? undefined : tables.task(conversation.debouncing);
  // Messages of different contexts are never merged: those that are held back come first.
  const isSame = first !== undefined && first.context === record.context;
  if (first !== undefined && !isSame) admitDebounced(first, moment);
  if (isSame && tables.inputsCount(first.inputOwner) >= LIMITS.maxDebounced) {
    return { result: 'full', what: 'tasks', limit: LIMITS.maxDebounced };
  }
  // Before joining, too.
  const { waiting } = conversationOf(record, tables)!;
  if (debounceMs === 0 && policy !== 'replace' && waiting.length >= LIMITS.maxQueued) {
    return { result: 'full', what: 'queue', limit: LIMITS.maxQueued };
  }
  const task = isSame ? mergeDebounced(record, first, moment) : record;
  begin(task, request, moment);
  if (debounceMs === 0) {
    const receipt = admit(task, policy, moment);
    if (receipt.result !== 'created') tables.clear(task.id);
    return receipt;
  }
  const held = delayUntil({ ...task, policy }, now + debounceMs, moment);
  tables.saveConversation({ ...conversationOf(task, tables)!, debouncing: task.id, changedAt: now });
  tables.tell(hintOf('status', held));
  return receiptFor(held, tables);
}

/** Moves the messages that are still held back to the newest task. */
function mergeDebounced(task: StoredTask, held: StoredTask, moment: OperationContext): StoredTask {
  const { tables, now } = moment;
  const inputOwner = endMerged(held, task, moment);
  const { debouncing: _gathering, ...rest } = conversationOf(task, tables)!;
  tables.saveConversation({ ...rest, changedAt: now });
  return { ...task, inputOwner };
}

/** Applies the task's policy once the time to wait for more messages is over. */
export function admitDebounced(task: StoredTask, moment: OperationContext): void {
  const { tables, now } = moment;
  const { debouncing: _gathering, ...conversation } = conversationOf(task, tables)!;
  tables.saveConversation({ ...conversation, changedAt: now });
  const receipt = admit(task, task.policy!, moment);
  if (receipt.result === 'created') return;
  const message = 'another task of the conversation was under way';
  endUnstarted(task, createReason({ kind: 'rejected', message }, now), moment);
}
