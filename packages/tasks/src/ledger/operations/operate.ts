import type { PauseTarget } from '../../overview.ts';
import type { RemoveReceipt } from '../../store.ts';
import type { ConversationRef, TaskRef } from '../../task.ts';
import type { DriverEngineReceipt, EngineRequest, Shared, ShareRequest } from '../driver.ts';
import { DEFAULTS, LIMITS, OFFERED, OFFERED_SUSPECTS, SUSPECTS } from '../rules/rules.ts';
import { tell, tellConversation } from './feed.ts';
import { place, resume } from './stage.ts';
import { type DeliveryOf, newStoreState, type OperationContext, type Queries } from './tables.ts';

/** Stops or resumes delivery for an agent, a tenant or all. Returns whether more must be offered again. */
export function applyPause(
  target: PauseTarget,
  isPaused: boolean,
  context: OperationContext & { readonly tables: Pick<Queries, 'waiters' | 'engines'> },
): boolean {
  if (context.tables.isPaused(target) !== isPaused)
    tell({ kind: isPaused ? 'pause.started' : 'pause.ended', tenant: '', ...target }, context);
  context.tables.setPaused(target, isPaused);
  if (isPaused) return false;
  const targets = 'all' in target ? listDelivered(context).map((agent) => ({ agent })) : [target];
  for (const one of targets) resume(one, context);
  return targets.filter((one) => repeatOffers(one, context.now, context) === LIMITS.maxOffers).length > 0;
}

/** Returns the agents whose tasks workers wait for, or engines deliver. */
function listDelivered({
  tables,
  now,
}: {
  readonly tables: Pick<Queries, 'waiters' | 'engines'>;
  readonly now: number;
}): readonly string[] {
  const waiters = tables.waiters(now - LIMITS.idleWorkerTtlMs, DEFAULTS.maxPage);
  return [...new Set([...waiters.flatMap(({ agents }) => agents), ...Object.keys(tables.engines())])];
}

/** Lets an engine deliver an agent's tasks, or workers again, and moves some of those that wait. */
export function applyEngine(
  { agent, engine, lostBefore }: EngineRequest,
  context: OperationContext,
): DriverEngineReceipt {
  const { tables, now } = context;
  const present = tables.engine(agent);
  if (present !== undefined && engine !== undefined && present !== engine)
    return { result: 'refused', engine: present };
  if (present !== engine) tables.setEngine(agent, engine);
  const names = engine === undefined ? [OFFERED + agent, OFFERED_SUSPECTS + agent] : [agent, SUSPECTS + agent];
  const moved = tables.readyIn(names, LIMITS.maxPromoted);
  for (const task of moved) place(task, context);
  const repeated = lostBefore === undefined ? 0 : repeatOffers({ agent }, lostBefore, context);
  return { result: 'set', now, hasMore: moved.length === LIMITS.maxPromoted || repeated === LIMITS.maxOffers };
}

/** Makes offers count as lost that were repeated until a given time. Returns how many. */
function repeatOffers(of: DeliveryOf, until: number, { tables }: OperationContext): number {
  const tasks = tables.offeredAgain(of, until, LIMITS.maxOffers);
  for (const { offeredAt: _offeredAt, ...task } of tasks) tables.saveTask(task);
  return tasks.length;
}

/** Keeps what a client found out, or tells one client that it is due. */
export function applyShare({ maxAgeMs, found }: ShareRequest, { tables, now }: OperationContext): Shared {
  const state = tables.storeState() ?? newStoreState(now);
  const { sharedAt = -Infinity, shared = null } = state;
  const isDue = found === undefined && (now - sharedAt >= maxAgeMs || sharedAt > now);
  if (isDue) tables.saveStoreState({ ...state, sharedAt: now });
  if (found !== undefined) tables.saveStoreState({ ...state, shared: found });
  return { isDue, found: shared };
}

/** Removes an ended task, or an idle conversation. */
export function applyRemove(
  target: TaskRef | ConversationRef,
  { tables, now }: Pick<OperationContext, 'tables' | 'now'>,
): RemoveReceipt {
  if ('id' in target) {
    const task = tables.task(target.id);
    if (task?.tenant !== target.tenant) return { result: 'not-found' };
    if (task.endedAt === undefined) return { result: 'live' };
    tables.removeTask(task);
    return { result: 'removed' };
  }
  const conversation = tables.conversation(target);
  if (conversation === undefined) return { result: 'not-found' };
  if (conversation.current !== undefined || conversation.debouncing !== undefined) return { result: 'live' };
  tables.removeConversation(target);
  tellConversation(target, { tables, now });
  return { result: 'removed' };
}
