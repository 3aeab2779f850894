import { type Policy, SettingsError } from '@whoa/core';
import type { NewTask, TaskRef, TaskStore, TaskSummary } from '@whoa/tasks';
import type { Queue } from 'bullmq';

/**
 * The data of a job: the task to run, or a task to create first, for job schedulers and flows. A task is created once
 * per job, however often the job is delivered.
 */
export type Ticket = TaskRef | { readonly task: NewTask; readonly policy?: Policy };

/** Returns the ticket in a job. Throws `TypeError` if there is none. */
export function readTicket(data: unknown): Ticket {
  const { tenant, id, task } = (data ?? {}) as Record<string, unknown>;
  if (typeof tenant === 'string' && typeof id === 'string') return { tenant, id };
  if (typeof task === 'object' && task !== null) return data as Ticket;
  throw new SettingsError(
    'data',
    'expected { tenant, id } or { task }; create tasks with the store of the engine, and other jobs in another queue',
  );
}

export interface Offering {
  readonly store: TaskStore;
  readonly queue: Queue;
  /** The agents whose tasks get tickets. */
  readonly agents: ReadonlySet<string>;
  readonly onError: (error: unknown) => void;
}

/** The highest priority of a task. */
const MAX_PRIORITY = 100;

/** Makes sure that a waiting task has a ticket. Returns whether it had to be given one. */
export async function offerTicket(task: TaskSummary, { queue, agents }: Omit<Offering, 'store'>): Promise<boolean> {
  const { id, tenant, agent, stage, stageAt = 0, priority, endedAt } = task;
  // Otherwise a worker holds it, or another task comes first.
  const isWaiting = endedAt === undefined && (stage === 'ready' || stage === 'delayed');
  if (!isWaiting || !agents.has(agent)) return false;
  const state = await queue.getJobState(id);
  // The task became ready before its ticket was due.
  if (state === 'delayed' && stage === 'ready') await (await queue.getJob(id))?.promote();
  if (state === 'completed' || state === 'failed') await queue.remove(id);
  else if (state !== 'unknown') return false;
  // All of it follows from the task, so a ticket that was lost can be made again.
  await queue.add(
    agent,
    { tenant, id },
    {
      jobId: id,
      // BullMQ starts low numbers first, and jobs without a priority (0) before all others.
      priority: MAX_PRIORITY - priority,
      delay: stage === 'delayed' ? Math.max(0, stageAt - Date.now()) : 0,
    },
  );
  return true;
}

/** Gives every waiting task without a ticket a new one. Returns how many. */
export async function reofferTickets(offering: Offering): Promise<number> {
  const { store, onError } = offering;
  let offered = 0;
  for await (const { tenants } of readPages((page) => store.tenants(page)))
    for (const tenant of tenants)
      for (const status of ['init', 'cancelling'] as const)
        for await (const { tasks } of readPages((page) => store.list({ tenant, status, ...page }))) {
          const given = await Promise.all(tasks.map((task) => offerTicket(task, offering).catch(onError)));
          offered += given.filter((isNew) => isNew === true).length;
        }
  return offered;
}

async function* readPages<Page extends { readonly next?: string }>(
  read: (page: { cursor?: string }) => Promise<Page>,
): AsyncGenerator<Page> {
  for (let page = await read({}); ; page = await read({ cursor: page.next })) {
    yield page;
    if (page.next === undefined) return;
  }
}
