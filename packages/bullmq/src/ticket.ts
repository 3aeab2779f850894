import type { Policy } from '@whoa/core';
import type { NewTask, TaskRef, TaskSummary } from '@whoa/tasks';
import type { JobsOptions } from 'bullmq';

/**
 * The data of a job: the task to run, or a task to create first, for job schedulers and flows. A task is created once
 * per job, however often the job is delivered.
 */
export type Ticket = TaskRef | { readonly task: NewTask; readonly policy?: Policy };

/** The highest priority of a task. */
const MAX_PRIORITY = 100;

/** Returns the ticket in a job. Throws `TypeError` if there is none. */
export function readTicket(data: unknown): Ticket {
  const { tenant, id, task } = (data ?? {}) as Record<string, unknown>;
  if (typeof tenant === 'string' && typeof id === 'string') return { tenant, id };
  if (typeof task === 'object' && task !== null) return data as Ticket;
  throw new TypeError(
    'data: expected { tenant, id } or { task }; create tasks with the store of the engine, and other jobs in another queue',
  );
}

/** Returns whether a task needs a ticket: no worker holds it, and no other task comes first. */
export function needsTicket({ endedAt, stage }: TaskSummary): boolean {
  return endedAt === undefined && (stage === 'ready' || stage === 'delayed');
}

/** The options of a task's ticket. They follow from the task, so a ticket that was lost can be made again. */
export function toJobOptions({ id, priority, stage, stageAt = 0 }: TaskSummary): JobsOptions {
  return {
    jobId: id,
    // BullMQ starts low numbers first, and jobs without a priority (0) before all others.
    priority: MAX_PRIORITY - priority,
    delay: stage === 'delayed' ? Math.max(0, stageAt - Date.now()) : 0,
  };
}
