import { LIMITS } from '../rules/rules.ts';
import type { TaskOutcome } from '../task.ts';
import { hintOf, type KeptTask, type Lane, laneOf, type Moment } from './tables.ts';

/** Makes a task ready to be taken, and rings one worker that waits for such. */
export function makeReady(task: KeptTask, { tables, now }: Moment): KeptTask {
  const ready: KeptTask = { ...withoutPolicy(task), stage: 'ready', stageAt: now };
  const lane = laneOf(ready);
  tables.saveTask(ready);
  tables.openLane(lane);
  ring(lane, { tables, now });
  return ready;
}

/** Puts a task off until a moment. */
export function putOff(task: KeptTask, at: number, { tables }: Pick<Moment, 'tables'>): KeptTask {
  const later: KeptTask = { ...task, stage: 'later', stageAt: at };
  tables.saveTask(later);
  return later;
}

/**
 * The turn of a task has come: it waits for its time, then for the worker it was meant for, then it is anybody's. That
 * worker is told, so that it need not wait.
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

/** A task that no worker has is to be settled by whoever is free. */
export function settleSoon(task: KeptTask, moment: Moment): void {
  const { worker: _worker, ...rest } = task;
  moment.tables.tell(hintOf('cancel', rest));
  makeReady(rest, moment);
}

/** Tells one worker that waits for it that something is ready. */
function ring({ agent }: Pick<Lane, 'agent'>, { tables, now }: Pick<Moment, 'tables' | 'now'>): void {
  const worker = tables.popWaiter(agent, now - LIMITS.parkedMs);
  if (worker !== undefined) tables.tell({ type: 'work', worker, domain: 0, agent });
}

/** Changes what the worker of a task should know. It is told until it confirms. */
export function giveOrder(task: KeptTask, type: 'cancel' | 'command', { tables }: Pick<Moment, 'tables'>): KeptTask {
  const isHeld = task.stage === 'held';
  const ordered: KeptTask = { ...task, orderNumber: task.orderNumber + 1, ...(isHeld && { told: true }) };
  tables.saveTask(ordered);
  tables.tell(hintOf(type, ordered));
  return ordered;
}

/** The one way a task ends. It does not leave its queue: that is for the caller to do. */
export function end(task: KeptTask, outcome: NonNullable<KeptTask['outcome']>, moment: Moment): KeptTask {
  const { tables, now } = moment;
  const { stage, stageAt: _stageAt, policy: _policy, told: _told, ...rest } = task;
  const status: TaskOutcome['status'] = outcome.status;
  const ended: KeptTask = { ...rest, status, endedAt: now, commands: [], outcome };
  tables.saveTask(ended);
  if (stage === 'held') freeSlot(ended, moment);
  tables.tell(hintOf('status', ended));
  return ended;
}

/** A task no longer runs: where a limit kept others waiting, they can be taken now. */
export function freeSlot({ tenant, agent }: KeptTask, { tables, now, rules }: Moment): void {
  if (rules.maxRunningPerTenant !== undefined) {
    for (const waiting of tables.readyAgents(tenant)) {
      tables.openLane({ agent: waiting, tenant });
      ring({ agent: waiting }, { tables, now });
    }
  }
  if (rules.maxRunningPerAgent !== undefined && tables.firstLane([agent]) !== undefined) {
    ring({ agent }, { tables, now });
  }
}

function withoutPolicy(task: KeptTask): KeptTask {
  const { policy: _policy, ...rest } = task;
  return rest;
}
