import type { PauseTarget } from '../overview.ts';
import { LIMITS, SUSPECTS } from '../rules/rules.ts';
import { toAgent } from '../rules/suspects.ts';
import type { TaskOutcome } from '../task.ts';
import { hintOf, type KeptTask, type Lane, laneOf, type Moment } from './tables.ts';

/** Makes a task ready, and notifies one waiting worker. */
export function makeReady(task: KeptTask, { tables, now }: Moment): KeptTask {
  const ready: KeptTask = { ...withoutPolicy(task), stage: 'ready', stageAt: now };
  const lane = laneOf(ready);
  tables.saveTask(ready);
  tables.openLane(lane);
  ring(lane, { tables, now });
  return ready;
}

/** Delays a task until a given time. */
export function putOff(task: KeptTask, at: number, { tables }: Pick<Moment, 'tables'>): KeptTask {
  const later: KeptTask = { ...task, stage: 'later', stageAt: at };
  tables.saveTask(later);
  return later;
}

/**
 * Moves a task on when it is next: it waits for its start time, then for its preferred worker, then any worker can take
 * it. The preferred worker is notified, so that it need not wait.
 */
export function comeNext(task: KeptTask, moment: Moment): KeptTask {
  const { tables, now } = moment;
  const { notBefore, worker } = task;
  if (notBefore !== undefined && notBefore > now) return putOff(withoutPolicy(task), notBefore, moment);
  if (worker === undefined) return makeReady(task, moment);
  const later = putOff(withoutPolicy(task), now + LIMITS.homeMs, moment);
  tables.tell(hintOf('wake', later));
  return later;
}

/** Lets a free worker settle a task that no worker holds. */
export function settleSoon(task: KeptTask, moment: Moment): void {
  const { worker: _worker, ...rest } = task;
  moment.tables.tell(hintOf('cancel', rest));
  makeReady(rest, moment);
}

/** Notifies one waiting worker that a task is ready. */
function ring({ agent: lane }: Pick<Lane, 'agent'>, { tables, now }: Pick<Moment, 'tables' | 'now'>): void {
  const agent = toAgent(lane);
  const worker = tables.popWaiter(agent, now - LIMITS.parkedMs);
  if (worker !== undefined) tables.tell({ type: 'work', worker, domain: 0, agent });
}

/** Changes the orders of a task. They are sent to its worker until it confirms. */
export function giveOrder(task: KeptTask, type: 'cancel' | 'command', { tables }: Pick<Moment, 'tables'>): KeptTask {
  const isHeld = task.stage === 'held';
  const ordered: KeptTask = { ...task, orderNumber: task.orderNumber + 1, ...(isHeld && { told: true }) };
  tables.saveTask(ordered);
  tables.tell(hintOf(type, ordered));
  return ordered;
}

/** The only function that ends a task. The caller must remove it from its conversation. */
export function end(task: KeptTask, outcome: NonNullable<KeptTask['outcome']>, moment: Moment): KeptTask {
  const { tables, now } = moment;
  const { stage, stageAt: _stageAt, policy: _policy, told: _told, lostClaim: _lostClaim, ...rest } = task;
  const status: TaskOutcome['status'] = outcome.status;
  const ended: KeptTask = { ...rest, status, endedAt: now, commands: [], outcome };
  tables.saveTask(ended);
  if (stage === 'held') freeSlot(ended, moment);
  tables.tell(hintOf('status', ended));
  return ended;
}

/** Call it when a task no longer runs: tasks that waited because of a limit can be taken now. */
export function freeSlot({ tenant, agent }: KeptTask, moment: Moment): void {
  const { rules } = moment;
  if (rules.maxRunningPerTenant !== undefined) resume({ tenant }, moment);
  if (rules.maxRunningPerAgent !== undefined) resume({ agent }, moment);
}

/** Lets workers take tasks of a tenant or an agent again. */
export function resume(target: PauseTarget, { tables, now }: Pick<Moment, 'tables' | 'now'>): void {
  if ('tenant' in target) {
    for (const agent of tables.readyLanes(target.tenant)) {
      tables.openLane({ agent, tenant: target.tenant });
      ring({ agent }, { tables, now });
    }
  } else if (tables.firstLane([target.agent, SUSPECTS + target.agent]) !== undefined) {
    ring(target, { tables, now });
  }
}

function withoutPolicy(task: KeptTask): KeptTask {
  const { policy: _policy, ...rest } = task;
  return rest;
}
