import type { PauseTarget } from '../../overview.ts';
import { LIMITS, SUSPECTS } from '../rules/rules.ts';
import { toAgent } from '../rules/suspects.ts';
import { applyTransition } from '../rules/transitions.ts';
import { endQuestions } from './questions.ts';
import { type OperationContext, type ReadyQueue, type StoredTask, toHint, toReadyQueue } from './tables.ts';

/** Makes a task ready, and notifies one waiting worker. */
export function makeReady(task: StoredTask, { tables, now }: OperationContext): StoredTask {
  const ready = applyTransition(task, 'ready', { now });
  const readyQueue = toReadyQueue(ready);
  tables.saveTask(ready);
  tables.openReadyQueue(readyQueue);
  wakeWorker(readyQueue, { tables, now });
  return ready;
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
  if (notBefore !== undefined && notBefore > now) return delayUntil(next, notBefore, context);
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

/** Lets workers take tasks of a tenant or an agent again. */
export function resume(target: PauseTarget, { tables, now }: Pick<OperationContext, 'tables' | 'now'>): void {
  if ('tenant' in target) {
    for (const agent of tables.readyQueueNames(target.tenant)) {
      tables.openReadyQueue({ agent, tenant: target.tenant });
      wakeWorker({ agent }, { tables, now });
    }
  } else if (tables.firstReadyQueue([target.agent, SUSPECTS + target.agent]) !== undefined) {
    wakeWorker(target, { tables, now });
  }
}
