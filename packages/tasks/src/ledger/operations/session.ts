import type {
  Heartbeat,
  HeartbeatResult,
  HeldTask,
  SessionRef,
  SweepResult,
  TaskOrders,
} from '../../delivery/worker-store.ts';
import { LIMITS } from '../rules/rules.ts';
import { toDeathDelay, toLostMessage } from '../rules/suspects.ts';
import { applyTransition } from '../rules/transitions.ts';
import { recordContact } from './contact.ts';
import { ordersFor } from './orders.ts';
import { leaveConversation } from './queue.ts';
import { delayUntil, end, freeSlot, makeReady } from './stage.ts';
import type { OperationContext, Session, StoredTask } from './tables.ts';

/** Keeps a session alive, however late the beat, as long as no task was taken from it. */
export function applyBeat(
  { session: id, confirmed, count }: Required<Heartbeat>,
  context: OperationContext,
): HeartbeatResult {
  const { tables, now } = context;
  const session = tables.session(id);
  if (session === undefined || session.isOver) return { result: 'session-ended' };
  const expired = recordContact(session.leaseMs, context, { maySweep: true });
  const state = tables.storeState()!;
  if (state.isGraceGranted) tables.saveStoreState({ ...state, isGraceGranted: false });
  const held = tables.countHeldBy(id);
  if (held > 0) tables.saveSession({ ...session, expiresAt: now + session.leaseMs, lastHeldAt: now });
  for (const one of confirmed) confirm(one, id, context);
  const pending = tables.withPendingOrders(id, LIMITS.maxOrders + 1);
  const orders = pending.slice(0, LIMITS.maxOrders).map((task): TaskOrders => {
    return { id: task.id, epoch: task.epoch, claim: task.claim!, ...ordersFor(task, context) };
  });
  const more = { hasMore: pending.length > orders.length, shouldReconcile: held !== count };
  return { result: 'alive', orders, ...more, shouldSweep: expired, now };
}

/** Only the current holder can confirm, and only the latest order: a former holder must not confirm for a new one. */
function confirm(
  { id, epoch, claim, orderNumber }: Required<Heartbeat>['confirmed'][number],
  session: string,
  { tables }: OperationContext,
): void {
  const task = tables.task(id);
  if (task?.hasPendingOrders !== true || task.session !== session || task.epoch !== epoch || task.claim !== claim)
    return;
  if (task.orderNumber === orderNumber) tables.saveTask({ ...task, hasPendingOrders: false });
}

export function applyHeld({ session }: SessionRef, { tables }: Pick<OperationContext, 'tables'>): readonly HeldTask[] {
  return tables.heldBy(session, Infinity).map(({ id, epoch, claim }) => ({ id, epoch, claim: claim! }));
}

/** Ends expired sessions and frees their tasks, a few at a time. */
export function applySweep(limit: number, context: OperationContext): SweepResult {
  const { tables, now } = context;
  let first = tables.firstSession();
  if (first !== undefined) recordContact(first.leaseMs, context, { maySweep: true });
  // The clock may have been set back, and the sessions adjusted.
  first = tables.firstSession();
  const { graceUntil } = tables.storeState() ?? { graceUntil: 0 };
  if (first !== undefined && now < graceUntil) return { reclaimed: 0, hasMore: false, nextExpiryAt: graceUntil, now };
  let reclaimed = 0;
  while (first !== undefined && first.expiresAt! <= now && reclaimed < limit) {
    reclaimed += reclaimSome(first, limit - reclaimed, context);
    first = tables.firstSession();
  }
  const nextExpiryAt = first?.expiresAt;
  const next = nextExpiryAt !== undefined && { nextExpiryAt };
  return { reclaimed, hasMore: (nextExpiryAt ?? Infinity) <= now, ...next, now };
}

function reclaimSome(session: Session, limit: number, context: OperationContext): number {
  const { tables } = context;
  const tasks = tables.heldBy(session.id, limit);
  const isOver = session.isOver || tasks.length > 0;
  for (const task of tasks) reclaim(task, session, context);
  const isEmpty = tables.countHeldBy(session.id) === 0;
  // Do this in the step that frees the first task: after that no beat counts. A session without tasks is only idle.
  const { expiresAt, ...rest } = { ...session, isOver };
  tables.saveSession({ ...rest, ...(!isEmpty && expiresAt !== undefined && { expiresAt }) });
  return tasks.length;
}

/** Takes a task away from a session that is over. Its epoch increases, so later writes of its worker do not count. */
function reclaim(task: StoredTask, session: Session, context: OperationContext): void {
  const { now } = context;
  // A session holds one suspect at most. If it crashed, that task is charged, and none of its neighbours.
  const isCharged = task.status === 'running' && holdsAsSuspect(session, task);
  const charges = (task.charges ?? 0) + Number(isCharged);
  const reclaimed = applyTransition(task, 'reclaim', { now, charges, isCharged, lostClaim: task.claim! });
  if (task.status === 'running' && reclaimed.crashes >= LIMITS.maxCrashes) {
    failLost(reclaimed, context);
    return;
  }
  freeSlot(task, context);
  const delayMs = task.status === 'cancelling' ? 0 : toDeathDelay(task.id, reclaimed.crashes);
  if (delayMs > 0) delayUntil(reclaimed, now + delayMs, context);
  else makeReady(reclaimed, context);
}

/** Returns whether a session holds a task as its suspect. Progress, a release or the end of the task change that. */
export function holdsAsSuspect({ id, suspect }: Session, task: StoredTask | undefined): boolean {
  const isHeld = task?.id === suspect && task?.stage === 'held' && task.session === id;
  return isHeld && task.attempts > LIMITS.suspectAttempts;
}

/** Ends a task whose workers kept crashing. */
export function failLost(task: StoredTask, context: OperationContext): void {
  const error = { message: toLostMessage(task.crashes), code: 'WORKERS_LOST' };
  leaveConversation(end(task, { status: 'failed', error }, context), context);
}
