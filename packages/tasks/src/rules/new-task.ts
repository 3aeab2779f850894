import type { CreateRequest } from '../stores/driver.ts';
import type { TaskHead } from '../task.ts';

/** Returns a task as it is when it has just been created, before a store decides where it waits. */
export function toNewTask(request: CreateRequest, now: number): TaskHead {
  const { id, tenant, agent, conversation, key, nonce, worker, priority, notBefore, deadline, concurrency } = request;
  return {
    id,
    tenant,
    agent,
    ...(conversation !== undefined && { conversation }),
    ...(key !== undefined && { key, nonce }),
    ...(worker !== undefined && { worker }),
    ...(notBefore !== undefined && { notBefore }),
    ...(deadline !== undefined && { deadline }),
    ...(concurrency !== undefined && { concurrency }),
    priority,
    status: 'init',
    epoch: 0,
    attempts: 0,
    deaths: 0,
    createdAt: now,
    commands: [],
    commandsSent: 0,
    orderNumber: 0,
    position: 0,
    journalBytes: 0,
  };
}
