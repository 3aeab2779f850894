import type { TaskRef, TaskStore, TaskSummary } from '@whoa/tasks';
import { findQuestionTask } from '@whoa/tasks/internal';

/** What a store with tickets tells about its tasks. */
export interface TicketListener {
  onCreated(task: TaskSummary): Promise<void>;
  onCancelled(id: string): Promise<void>;
  /** A task that waited for an answer can continue. */
  onAnswered(task: TaskRef): Promise<void>;
  /** A task ended, and the next task of its conversation became ready. */
  onSuccessor(ended: string, successor: string): void;
}

/** Returns the same store, which also tells when a task needs a ticket or no longer needs one. */
export function createOfferingStore(store: TaskStore, listener: TicketListener): TaskStore {
  const changed: Pick<TaskStore, 'create' | 'cancel' | 'answer' | 'finish'> = {
    async create(task, options) {
      const receipt = await store.create(task, options);
      if ('task' in receipt) await listener.onCreated(receipt.task);
      return receipt;
    },
    async cancel(target, reason, options) {
      const receipt = await store.cancel(target, reason, options);
      const isOver = receipt.result !== 'not-found' && receipt.status === 'cancelled';
      if (isOver && 'id' in target) await listener.onCancelled((target as TaskRef).id);
      return receipt;
    },
    async answer(question, answer, options) {
      const receipt = await store.answer(question, answer, options);
      const id = findQuestionTask(question.id);
      if (receipt.result === 'accepted' && id !== undefined) await listener.onAnswered({ tenant: question.tenant, id });
      return receipt;
    },
    async finish(claim, outcome) {
      const receipt = await store.finish(claim, outcome);
      if (receipt.successor !== undefined) listener.onSuccessor(claim.id, receipt.successor);
      return receipt;
    },
  };
  return new Proxy(store, {
    get(target, name) {
      if (Object.hasOwn(changed, name)) return changed[name as keyof typeof changed];
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
