import type { TaskStore, TaskSummary } from '@whoa/tasks';
import type { Queue } from 'bullmq';
import { needsTicket, toJobOptions } from './ticket.ts';

export interface Offering {
  readonly store: TaskStore;
  readonly queue: Queue;
  /** The agents whose tasks get tickets. */
  readonly agents: ReadonlySet<string>;
  readonly onError: (error: unknown) => void;
}

/** Makes sure that a waiting task has a ticket. Returns whether it had to be given one. */
export async function offerTicket(task: TaskSummary, { queue, agents }: Omit<Offering, 'store'>): Promise<boolean> {
  const { id, tenant, agent, stage } = task;
  if (!agents.has(agent) || !needsTicket(task)) return false;
  const state = await queue.getJobState(id);
  // The task became ready before its ticket was due.
  if (state === 'delayed' && stage === 'ready') await (await queue.getJob(id))?.promote();
  if (state === 'completed' || state === 'failed') await queue.remove(id);
  else if (state !== 'unknown') return false;
  await queue.add(agent, { tenant, id }, toJobOptions(task));
  return true;
}

/** Gives every waiting task without a ticket a new one. Returns how many. */
export async function reofferTickets(offering: Offering): Promise<number> {
  let offered = 0;
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const page = await offering.store.tenants(cursor === undefined ? {} : { cursor });
    for (const tenant of page.tenants) {
      for (const status of ['init', 'cancelling'] as const) offered += await reofferToTenant(tenant, status, offering);
    }
    cursor = page.next;
  }
  return offered;
}

async function reofferToTenant(tenant: string, status: 'init' | 'cancelling', offering: Offering): Promise<number> {
  let offered = 0;
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const page = await offering.store.list({ tenant, status, ...(cursor !== undefined && { cursor }) });
    const given = await Promise.all(
      page.tasks.map((task) => offerTicket(task, offering).catch((error) => offering.onError(error))),
    );
    offered += given.filter((isNew) => isNew === true).length;
    cursor = page.next;
  }
  return offered;
}
