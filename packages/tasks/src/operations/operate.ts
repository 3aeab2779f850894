import type { PauseTarget } from '../overview.ts';
import type { RemoveReceipt } from '../store.ts';
import type { ConversationRef, TaskRef } from '../task.ts';
import { resume } from './stage.ts';
import type { Moment } from './tables.ts';

/** Stops or resumes the delivery of an agent's or a tenant's tasks. */
export function applyPause(target: PauseTarget, isPaused: boolean, moment: Moment): void {
  moment.tables.setPaused(target, isPaused);
  if (!isPaused) resume(target, moment);
}

/** Removes an ended task, or an idle conversation. */
export function applyRemove(target: TaskRef | ConversationRef, { tables }: Pick<Moment, 'tables'>): RemoveReceipt {
  if ('id' in target) {
    const task = tables.task(target.id);
    if (task?.tenant !== target.tenant) return { answer: 'unknown' };
    if (task.endedAt === undefined) return { answer: 'live' };
    tables.removeTask(task);
    return { answer: 'removed' };
  }
  const conversation = tables.conversation(target);
  if (conversation === undefined) return { answer: 'unknown' };
  if (conversation.current !== undefined || conversation.gathering !== undefined) return { answer: 'live' };
  tables.removeConversation(target);
  return { answer: 'removed' };
}
