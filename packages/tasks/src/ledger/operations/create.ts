import type { Json } from '@whoa/core';
import { createReason } from '@whoa/core/embed';
import type { CreateReceipt } from '../../store.ts';
import type { CreateRequest, DriverReceipt } from '../driver.ts';
import { toNewTask } from '../rules/new-task.ts';
import { LIMITS, OFFERED, SIZES } from '../rules/rules.ts';
import { tellConversation } from './feed.ts';
import { admit, endMerged, endUnstarted, findTaskConversation, receiptFor } from './queue.ts';
import { delayUntil, promote } from './stage.ts';
import type { OperationContext, StoredTask } from './tables.ts';
import { toHint, toRecord } from './views.ts';

/** Creates a task and admits it to its conversation, if it has one. */
export function applyCreate(request: CreateRequest, context: OperationContext): DriverReceipt {
  const { tables, now } = context;
  const existing = tables.task(request.id);
  if (existing !== undefined) {
    // Without a key the id is derived from the nonce, so it is the same request.
    const isRepeated = existing.key === undefined || existing.nonce === request.nonce;
    if (isRepeated) return receiptFor(existing, tables);
    return { result: 'duplicate', task: toRecord(existing, tables) };
  }
  const full = whatIsFull(request, context);
  if (full !== undefined) return full;
  const { id, keepsQuestions } = request;
  const hidden = {
    inputOwner: id,
    ...(request.context !== '' && { context: request.context }),
    ...(keepsQuestions === true && { keepsQuestions }),
  };
  const record: StoredTask = { ...toNewTask(request, now), ...hidden };
  if (request.conversation !== undefined) {
    const receipt = createInConversation(record, request, context);
    if (receipt.result === 'created') tellConversation({ ...record, conversation: request.conversation }, context);
    return receipt;
  }
  begin(record, request, context);
  const task = promote(record, context);
  tables.notify(toHint('status', task));
  return receiptFor(task, tables);
}

function whatIsFull(request: CreateRequest, { tables, rules }: OperationContext): CreateReceipt | undefined {
  const { agent, tenant } = request;
  const limit = rules.maxReady;
  const readyQueue = tables.engine(agent) === undefined ? agent : OFFERED + agent;
  if (tables.countReady({ agent: readyQueue, tenant }, limit) >= limit) return { result: 'full', what: 'tasks', limit };
  const bytes = findTaskConversation(request as Pick<StoredTask, 'tenant' | 'conversation'>, tables)?.historyBytes ?? 0;
  return bytes > SIZES.historyBytes ? { result: 'full', what: 'history', limit: SIZES.historyBytes } : undefined;
}

function begin(task: StoredTask, { input }: CreateRequest, { tables }: OperationContext): void {
  if (task.inputOwner === task.id) tables.clear(task.id);
  tables.addInput(task.inputOwner, JSON.parse(input) as Json);
}

function createInConversation(record: StoredTask, request: CreateRequest, context: OperationContext): CreateReceipt {
  const { tables, now } = context;
  const { policy, debounceMs } = request;
  const conversation = findTaskConversation(record, tables)!;
  // Check this before joining: a rejected message must not take the accepted ones that are still held back with it.
  if (policy === 'reject' && debounceMs === 0 && conversation.current !== undefined) return { result: 'rejected' };
  const first = conversation.debouncing === undefined ? undefined : tables.task(conversation.debouncing);
  // Messages of different contexts are never merged: those that are held back come first.
  const isSame = first !== undefined && first.context === record.context;
  if (first !== undefined && !isSame) admitDebounced(first, context);
  if (isSame && tables.inputsCount(first.inputOwner) >= LIMITS.maxDebounced) {
    return { result: 'full', what: 'tasks', limit: LIMITS.maxDebounced };
  }
  // Before joining, too.
  const { waiting } = findTaskConversation(record, tables)!;
  if (debounceMs === 0 && policy !== 'replace' && waiting.length >= LIMITS.maxQueued) {
    return { result: 'full', what: 'queue', limit: LIMITS.maxQueued };
  }
  const task = isSame ? mergeDebounced(record, first, context) : record;
  begin(task, request, context);
  if (debounceMs === 0) {
    const receipt = admit(task, policy, context);
    if (receipt.result !== 'created') tables.clear(task.id);
    return receipt;
  }
  const held = delayUntil({ ...task, policy }, now + debounceMs, context);
  tables.saveConversation({ ...findTaskConversation(task, tables)!, debouncing: task.id, changedAt: now });
  tables.notify(toHint('status', held));
  return receiptFor(held, tables);
}

/** Moves the messages that are still held back to the newest task. */
function mergeDebounced(task: StoredTask, held: StoredTask, context: OperationContext): StoredTask {
  const { tables, now } = context;
  const inputOwner = endMerged(held, task, context);
  const { debouncing: _gathering, ...rest } = findTaskConversation(task, tables)!;
  tables.saveConversation({ ...rest, changedAt: now });
  return { ...task, inputOwner };
}

/** Applies the task's policy once the time to wait for more messages is over. */
export function admitDebounced(task: StoredTask, context: OperationContext): void {
  const { tables, now } = context;
  const { debouncing: _gathering, ...conversation } = findTaskConversation(task, tables)!;
  tables.saveConversation({ ...conversation, changedAt: now });
  const receipt = admit(task, task.policy!, context);
  tellConversation(conversation, context);
  if (receipt.result === 'created') return;
  const message = 'another task of the conversation was under way';
  endUnstarted(task, createReason({ kind: 'rejected', message }, now), context);
}
