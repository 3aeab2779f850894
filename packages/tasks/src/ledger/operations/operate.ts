import type { PauseTarget } from '../../overview.ts';
import type { RemoveReceipt } from '../../store.ts';
import type { ConversationRef, TaskRef } from '../../task.ts';
import type { Shared, ShareRequest } from '../driver.ts';
import { resume } from './stage.ts';
import { newStoreState, type OperationContext } from './tables.ts';

/** Stops or resumes the delivery of an agent's or a tenant's tasks. */
export function applyPause(target: PauseTarget, isPaused: boolean, context: OperationContext): void {
  context.tables.setPaused(target, isPaused);
  if (!isPaused) resume(target, context);
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
  { tables }: Pick<OperationContext, 'tables'>,
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
  return { result: 'removed' };
}
