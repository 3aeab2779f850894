import type { PauseTarget } from '../overview.ts';
import { LIMITS, SUSPECTS } from '../rules/rules.ts';
import { toAgent } from '../rules/suspects.ts';
import { applyTransition } from '../rules/transitions.ts';
import { endQuestions } from './questions.ts';
import { hintOf, type OperationContext, type ReadyQueue, type StoredTask, toReadyQueue } from './tables.ts';

/** Makes a task ready, and notifies one waiting worker. */
export function makeReady(task: StoredTask, { tables, now }: OperationContext): StoredTask {
  const ready = applyTransition(task, 'ready', { now });
  const lane = toReadyQueue(ready);
  tables.saveTask(ready);
  tables.openReadyQueue(lane);
  ring(lane, { tables, now });
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
export function promote(task: StoredTask, moment: OperationContext): StoredTask {
  const { tables, now } = moment;
  const { policy: _policy, ...next } = task;
  const { notBefore, worker } = next;
  if (notBefore !== undefined && notBefore > now) return delayUntil(next, notBefore, moment);
  if (worker === undefined) return makeReady(next, moment);
  const later = delayUntil(next, now + LIMITS.preferredWorkerMs, moment);
  tables.tell(hintOf('wake', later));
  return later;
}

/** Lets a free worker settle a task that no worker holds. */
export function makeSettleable(task: StoredTask, moment: OperationContext): void {
  const { worker: _worker, ...rest } = task;
  moment.tables.tell(hintOf('cancel', rest));
  makeReady(rest, moment);
}

/** Notifies one waiting worker that a task is ready. */
function ring(
  { agent: lane }: Pick<ReadyQueue, 'agent'>,
  { tables, now }: Pick<OperationContext, 'tables' | 'now'>,
): void {
  const agent = toAgent(lane);
  const worker = tables.takeWaiter(agent, now - LIMITS.idleWorkerTtlMs);
  if (worker !== undefined) tables.tell({ type: 'work', worker, domain: 0, agent });
}

/** Changes the orders of a task. They are sent to its worker until it confirms. A parked task needs a worker then. */
export function sendOrder(task: StoredTask, type: 'cancel' | 'command', moment: OperationContext): StoredTask {
  const { tables, now } = moment;
  const ordered = applyTransition(task, 'order', { now });
  tables.tell(hintOf(type, ordered));
  if (task.stage === 'parked') return wake(ordered, moment);
  tables.saveTask(ordered);
  return ordered;
}

function wake(task: StoredTask, moment: OperationContext): StoredTask {
  const awake = applyTransition(task, 'wake', { now: moment.now });
  moment.tables.tell(hintOf('wake', awake));
  return makeReady(awake, moment);
}

/** The only function that ends a task. The caller must remove it from its conversation. */
export function end(
  task: StoredTask,
  outcome: NonNullable<StoredTask['outcome']>,
  moment: OperationContext,
): StoredTask {
  const { tables, now } = moment;
  const ended = applyTransition(endQuestions(task, moment), 'end', { now, status: outcome.status, outcome });
  tables.saveTask(ended);
  if (task.stage === 'held') freeSlot(ended, moment);
  tables.tell(hintOf('status', ended));
  return ended;
}

/** Call it when a task no longer runs: tasks that waited because of a limit can be taken now. */
export function freeSlot({ tenant, agent }: StoredTask, moment: OperationContext): void {
  const { rules } = moment;
  if (rules.maxRunningPerTenant !== undefined) resume({ tenant }, moment);
  if (rules.maxRunningPerAgent !== undefined) resume({ agent }, moment);
}

/** Lets workers take tasks of a tenant or an agent again. */
export function resume(target: PauseTarget, { tables, now }: Pick<OperationContext, 'tables' | 'now'>): void {
  if ('tenant' in target) {
    for (const agent of tables.readyLanes(target.tenant)) {
      tables.openReadyQueue({ agent, tenant: target.tenant });
      ring({ agent }, { tables, now });
    }
  } else if (tables.firstReadyQueue([target.agent, SUSPECTS + target.agent]) !== undefined) {
    ring(target, { tables, now });
  }
}
