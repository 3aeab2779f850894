import { AsyncLocalStorage } from 'node:async_hooks';
import type { Approve } from '@whoa/core';

/** Holds calls until somebody, anywhere, says yes or no through the store. Give it to the agent and to the runner. */
export interface Approvals {
  /** For `createAgent({ approve })`. */
  readonly approve: Approve;
  /** Runs something as a task, so that `approve` knows whose call it is asked about. */
  during<T>(taskId: string, work: () => T): T;
  /** An answer that came through the store; it may come before the question. */
  answer(taskId: string, callId: string, approved: boolean | string): void;
  /** The task has ended. */
  forget(taskId: string): void;
}

export function createApprovals(): Approvals {
  const current = new AsyncLocalStorage<string>();
  const tasks = new Map<
    string,
    Map<string, { answer?: boolean | string; tell?: (answer: boolean | string) => void }>
  >();

  function slot(taskId: string, callId: string) {
    const ofTask =
      tasks.get(taskId) ?? new Map<string, { answer?: boolean | string; tell?: (answer: boolean | string) => void }>();
    tasks.set(taskId, ofTask);
    const one = ofTask.get(callId) ?? {};
    ofTask.set(callId, one);
    return one;
  }

  return {
    approve({ call }, { signal }) {
      const taskId = current.getStore();
      if (taskId === undefined) return 'nobody can be asked: the agent does not run as a task';
      const one = slot(taskId, call.id);
      if (one.answer !== undefined) return one.answer;
      return new Promise((resolve) => {
        one.tell = resolve;
        signal.addEventListener('abort', () => resolve('cancelled before anybody answered'), { once: true });
      });
    },
    during: (taskId, work) => current.run(taskId, work),
    answer(taskId, callId, approved) {
      const one = slot(taskId, callId);
      one.answer = approved;
      one.tell?.(approved);
    },
    forget: (taskId) => tasks.delete(taskId),
  };
}
