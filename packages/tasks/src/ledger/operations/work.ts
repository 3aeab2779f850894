import type { Json } from '@whoa/core';
import { createReason } from '@whoa/core/embed';
import type { ClaimRef, Orders, ParkReceipt, SeenByWorker } from '../../delivery/worker-store.ts';
import { JournalFullError, JournalGapError, LeaseLostError } from '../../errors.ts';
import type { FinishResult, ReleaseResult } from '../../store.ts';
import type { JournalEntry } from '../../task.ts';
import type { DriverBatch, FinishRequest } from '../driver.ts';
import { hashClaim } from '../rules/claim-hash.ts';
import { isFinalStatus, nextStatus } from '../rules/status.ts';
import { applyTransition } from '../rules/transitions.ts';
import { ordersFor } from './orders.ts';
import { applyQuestions } from './questions.ts';
import { endUnstarted, findTaskConversation, leaveConversation } from './queue.ts';
import { delayUntil, end, freeSlot, makeReady } from './stage.ts';
import type { OperationContext, StoredTask, Tables } from './tables.ts';
import { toHint } from './views.ts';

export function applyAppend(by: ClaimRef, batch: DriverBatch, context: OperationContext): Orders {
  const { tables, now, rules } = context;
  const task = getClaimedTask(tables, by);
  const { after, events, replaces, done, declined, resetsAttempts, activity } = batch;
  const alreadyThere = events.length > 0 && task.position === after + events.length;
  if (!alreadyThere && task.position !== after) throw new JournalGapError(task.id, task.position, after);
  const added = alreadyThere ? [] : events;
  // The first batch removed them. One of the same positions may be there since.
  const removed = alreadyThere ? [] : replaces;
  const position = task.position + added.length;
  const journalBytes = bytesAfter(task, { added, replaces: removed, tables });
  if (journalBytes > Math.max(rules.maxJournalBytes, task.journalBytes)) {
    throw new JournalFullError(task.id, task.journalBytes, rules.maxJournalBytes);
  }
  const asking = alreadyThere ? task : applyQuestions(task, batch, context);
  const commands = task.commands.filter(({ number }) => !done.includes(number) && !declined.includes(number));
  if (removed.length > 0) tables.removeEntries(task.id, removed);
  if (added.length > 0) tables.addEntries(task.id, toEntries(batch, by, now));
  const kept = alreadyThere || activity === undefined ? {} : { storedActivity: activity };
  const reset = resetsAttempts && { attempts: 0, charges: 0 };
  const appended = { ...asking, position, journalBytes, commands, ...reset, ...kept };
  tables.saveTask(appended);
  // A new question changes the record, too.
  if (added.length > 0) tables.notify(toHint(batch.asks.length > 0 ? 'status' : 'journal', appended));
  endSteered(task, done, context);
  return ordersFor(appended, context);
}

function toEntries({ after, events, said }: DriverBatch, { epoch, claim }: ClaimRef, at: number): JournalEntry[] {
  const claimHash = hashClaim(claim);
  return events.map((event, index) => {
    return { position: after + index + 1, epoch, at, event: JSON.parse(event) as Json, claimHash, said: said[index]! };
  });
}

function bytesAfter(
  task: StoredTask,
  { added, replaces, tables }: { added: readonly string[]; replaces: readonly number[]; tables: Tables },
): number {
  let bytes = task.journalBytes - (replaces.length > 0 ? tables.measureEntries(task.id, replaces) : 0);
  for (const event of added) bytes += Buffer.byteLength(event);
  return bytes;
}

/** Ends the tasks of messages that the current task has read. */
function endSteered(task: StoredTask, done: readonly number[], context: OperationContext): void {
  for (const command of task.commands) {
    if (command.type !== 'steer' || command.task === undefined || !done.includes(command.number)) continue;
    const waiting = context.tables.task(command.task);
    if (waiting?.status !== 'init') continue;
    const reason = createReason({ kind: 'steered', message: `answered by ${task.id}` }, context.now);
    leaveConversation(endUnstarted(waiting, reason, context), context);
  }
}

export function applyRelease(by: ClaimRef, delayMs: number, context: OperationContext): ReleaseResult {
  const { tables } = context;
  const found = tables.task(by.id);
  if (found?.released === by.claim) return { result: 'unchanged' };
  if (found?.lostClaim === by.claim) return releaseLate(found, context);
  const own = getClaimedTask(tables, by);
  const released = applyTransition(own, 'release', { now: context.now, released: by.claim });
  freeSlot(own, context);
  tables.notify(toHint('preferred', released));
  // Only a task that will run again is delayed: a stop never waits.
  if (delayMs > 0 && released.status === 'init') delayUntil(released, context.now + delayMs, context);
  else makeReady(released, context);
  return { result: 'released' };
}

/** Parks a task if its worker has acted on everything, and only answers can make it continue. */
export function applyPark(by: ClaimRef, seen: SeenByWorker, context: OperationContext): ParkReceipt {
  const { tables, now } = context;
  if (tables.task(by.id)?.released === by.claim) return { result: 'unchanged' };
  const own = getClaimedTask(tables, by);
  const { open = 0, pending = 0 } = own.questionCounts ?? {};
  const isRead = own.position === seen.position && own.orderNumber === seen.orderNumber && own.commands.length === 0;
  if (own.status !== 'running' || !isRead || open === 0 || pending > 0) {
    return { result: 'busy', orders: ordersFor(own, context) };
  }
  const parked = applyTransition(own, 'park', { now, released: by.claim });
  tables.saveTask(parked);
  freeSlot(own, context);
  tables.notify(toHint('status', parked));
  return { result: 'parked' };
}

/** Takes a crash back: the worker that seemed to be lost is alive, and has stopped its work. */
function releaseLate(
  { lostClaim, isCharged, charges = 0, ...task }: StoredTask,
  context: OperationContext,
): ReleaseResult {
  // The attempt of its next worker still counts, and progress may have reset its own.
  const isCounted = task.attempts > Number(task.stage === 'held');
  const back: StoredTask = {
    ...task,
    crashes: task.crashes - 1,
    attempts: task.attempts - Number(isCounted),
    charges: Math.max(0, charges - Number(isCharged)),
    released: lostClaim!,
  };
  if (task.stage === 'held' || task.stage === 'parked') {
    context.tables.saveTask(back);
  } else {
    context.tables.notify(toHint('preferred', back));
    makeReady(back, context);
  }
  return { result: 'unchanged' };
}

export function applyFinish(
  by: ClaimRef,
  { outcome, newMessages, replacesHistory }: FinishRequest,
  context: OperationContext,
): FinishResult {
  const { tables, now } = context;
  const before = tables.task(by.id);
  if (before !== undefined && isFinalStatus(before.status) && before.claim === by.claim && before.epoch === by.epoch) {
    return { result: 'unchanged', status: before.status };
  }
  const task = getClaimedTask(tables, by);
  const { status } = nextStatus(task.status, outcome.status);
  if (!isFinalStatus(status)) throw new LeaseLostError(by.id, by.epoch);
  appendHistory(task, { newMessages, replacesHistory }, context);
  const ended = end(task, { ...settledOutcome(task, outcome, now), status }, context);
  const successor = leaveConversation(ended, context);
  return { result: 'finished', status, ...(successor !== undefined && { successor }) };
}

function appendHistory(
  task: StoredTask,
  { newMessages, replacesHistory }: Pick<FinishRequest, 'newMessages' | 'replacesHistory'>,
  { tables }: OperationContext,
): void {
  const conversation = findTaskConversation(task, tables);
  if (conversation === undefined) return;
  if (replacesHistory) tables.clearHistory(conversation);
  tables.addHistory(conversation, newMessages);
  const added = newMessages.reduce((bytes, message) => bytes + Buffer.byteLength(message), 0);
  tables.saveConversation({ ...conversation, historyBytes: (replacesHistory ? 0 : conversation.historyBytes) + added });
}

/** Returns the outcome to store: after an accepted cancel it is `cancelled`, with the reason of that cancel. */
function settledOutcome(
  task: StoredTask,
  outcome: FinishRequest['outcome'],
  now: number,
): NonNullable<StoredTask['outcome']> {
  if (task.stop === undefined && outcome.status !== 'cancelled') return outcome;
  const reason = task.stop?.reason ?? outcome.reason ?? createReason({}, now);
  return { ...outcome, status: 'cancelled', reason, isComplete: outcome.isComplete ?? outcome.status !== 'cancelled' };
}

/** Returns the task if the claim is still valid: by epoch, session and claim, never by time. */
export function getClaimedTask(tables: Tables, { id, epoch, session, claim }: ClaimRef): StoredTask {
  const task = tables.task(id);
  const isOwn = task?.epoch === epoch && task.session === session && task.claim === claim;
  if (!isOwn || (task.status !== 'running' && task.status !== 'cancelling')) throw new LeaseLostError(id, epoch);
  return task;
}
