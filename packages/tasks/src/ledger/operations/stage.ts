import type { OfferedTask } from '../../store.ts';
import { LIMITS, OFFERED, OFFERED_SUSPECTS, SUSPECTS } from '../rules/rules.ts';
import { toAgent } from '../rules/suspects.ts';
import { applyTransition } from '../rules/transitions.ts';
import { tellEnd } from './feed.ts';
import { endQuestions } from './questions.ts';
import type { DeliveryOf, OperationContext, ReadyQueue, StoredTask } from './tables.ts';
import { toHint, toReadyQueue } from './views.ts';

/** Makes a task ready, and notifies one waiting worker, or offers it to the engine of its agent. */
export function makeReady(task: StoredTask, context: OperationContext): StoredTask {
  const ready = applyTransition(task, 'ready', { now: context.now });
  return place(ready, context);
}

/** Puts a ready task where its agent's tasks wait: for workers, or for its engine. */
export function place(
  { isOffered: _isOffered, offeredAt: _offeredAt, ...ready }: StoredTask,
  { tables, now }: OperationContext,
): StoredTask {
  // A stop never waits for an engine.
  const isOffered = ready.status !== 'cancelling' && tables.engine(ready.agent) !== undefined;
  const placed = isOffered ? { ...ready, isOffered } : ready;
  const readyQueue = toReadyQueue(placed);
  tables.saveTask(placed);
  tables.openReadyQueue(readyQueue);
  if (isOffered) tables.notify({ type: 'offer', task: toOfferedTask(placed) });
  else wakeWorker(readyQueue, { tables, now });
  return placed;
}

export function toOfferedTask({ id, tenant, agent, priority, stage, stageAt }: StoredTask): OfferedTask {
  return { id, tenant, agent, priority, ...(stage === 'delayed' && { startsAt: stageAt! }) };
}

/** Delays a task until a given time. */
export function delayUntil(
  task: StoredTask,
  at: number,
  { tables, now }: Pick<OperationContext, 'tables' | 'now'>,
): StoredTask {
  const later = applyTransition(task, 'delay', { now, stageAt: at });
  tables.saveTask(later);
  return later;
}

/**
 * Moves a task on when it is next: it waits for its start time, then for its preferred worker, then any worker can take
 * it. The preferred worker is notified, so that it need not wait.
 */
export function promote(task: StoredTask, context: OperationContext): StoredTask {
  const { tables, now } = context;
  const { policy: _policy, ...next } = task;
  const { notBefore, worker } = next;
  if (notBefore !== undefined && notBefore > now) {
    const delayed = delayUntil(next, notBefore, context);
    if (tables.engine(next.agent) !== undefined) tables.notify({ type: 'offer', task: toOfferedTask(delayed) });
    return delayed;
  }
  if (worker === undefined) return makeReady(next, context);
  const later = delayUntil(next, now + LIMITS.preferredWorkerMs, context);
  tables.notify(toHint('preferred', later));
  return later;
}

/** Lets a free worker settle a task that no worker holds. */
export function makeSettleable(task: StoredTask, context: OperationContext): void {
  const { worker: _worker, ...rest } = task;
  context.tables.notify(toHint('cancel', rest));
  makeReady(rest, context);
}

/** Notifies one waiting worker that a task is ready. */
function wakeWorker(
  { agent: readyQueue }: Pick<ReadyQueue, 'agent'>,
  { tables, now }: Pick<OperationContext, 'tables' | 'now'>,
): void {
  const agent = toAgent(readyQueue);
  const worker = tables.takeWaiter(agent, now - LIMITS.idleWorkerTtlMs);
  if (worker !== undefined) tables.notify({ type: 'ready', worker, agent });
}

/** Changes the orders of a task. They are sent to its worker until it confirms. A parked task needs a worker then. */
export function sendOrder(task: StoredTask, type: 'cancel' | 'command', context: OperationContext): StoredTask {
  const { tables, now } = context;
  const ordered = applyTransition(task, 'order', { now });
  tables.notify(toHint(type, ordered));
  if (task.stage === 'parked') return wake(ordered, context);
  tables.saveTask(ordered);
  return ordered;
}

function wake(task: StoredTask, context: OperationContext): StoredTask {
  const awake = applyTransition(task, 'wake', { now: context.now });
  context.tables.notify(toHint('preferred', awake));
  return makeReady(awake, context);
}

/** The only function that ends a task. The caller must remove it from its conversation. */
export function end(
  task: StoredTask,
  outcome: NonNullable<StoredTask['outcome']>,
  context: OperationContext,
): StoredTask {
  const { tables, now } = context;
  const ended = applyTransition(endQuestions(task, context), 'end', { now, status: outcome.status, outcome });
  tables.saveTask(ended);
  tellEnd(ended, context);
  if (task.stage === 'held') freeSlot(ended, context);
  tables.notify(toHint('status', ended));
  return ended;
}

/** Call it when a task no longer runs: tasks that waited because of a limit can be taken now. */
export function freeSlot({ tenant, agent }: StoredTask, context: OperationContext): void {
  const { rules } = context;
  if (rules.maxRunningPerTenant !== undefined) resume({ tenant }, context);
  if (rules.maxRunningPerAgent !== undefined) resume({ agent }, context);
}

/** Lets workers take tasks of a tenant or an agent again. Of those that engines deliver, the first are offered. */
export function resume(target: DeliveryOf, { tables, now }: Pick<OperationContext, 'tables' | 'now'>): void {
  const offered = 'tenant' in target ? [] : [OFFERED_SUSPECTS + target.agent, OFFERED + target.agent];
  if ('tenant' in target) {
    for (const agent of tables.readyQueueNames(target.tenant)) {
      if (agent.startsWith(OFFERED_SUSPECTS) || agent.startsWith(OFFERED)) {
        const task = tables.firstReady({ agent, tenant: target.tenant });
        if (task !== undefined) offerAgain(task, tables);
        continue;
      }
      tables.openReadyQueue({ agent, tenant: target.tenant });
      wakeWorker({ agent }, { tables, now });
    }
  } else if (tables.firstReadyQueue([target.agent, SUSPECTS + target.agent]) !== undefined) {
    wakeWorker(target, { tables, now });
  }
  for (const task of offered.length === 0 ? [] : tables.readyIn(offered, 1)) offerAgain(task, tables);
}

/** Offers a task again that could not be taken before: now, or with the lost offers. */
export function offerAgain(
  { offeredAt: _offeredAt, ...task }: StoredTask,
  tables: OperationContext['tables'],
  { isSoon = true }: { readonly isSoon?: boolean } = {},
): void {
  tables.saveTask(task);
  if (isSoon) tables.notify({ type: 'offer', task: toOfferedTask(task) });
}
