import { type Policy, SettingsError } from '@whoa/core';
import type { NewTask, OfferSource } from '@whoa/tasks';
import type { BulkJobOptions } from 'bullmq';

export type Offer = Parameters<OfferSource['settle']>[0][number];
export type OfferResult = NonNullable<Parameters<OfferSource['settle']>[1]>[number];
export type OfferedTask = Parameters<OfferSource['repeat']>[0][number];

/**
 * What a job hands out: `tenants`, the first waiting task of an agent and tenant, in turn with other tenants; `jobs`, one
 * task, by its priority and delay.
 */
export type Order = 'tenants' | 'jobs';

/** The data of a job: what it hands out, or a task to create, for job schedulers. */
export type JobData = Offer | { readonly task: NewTask; readonly policy?: Policy };

export type NewJob = { readonly name: string; readonly data: Offer; readonly opts: BulkJobOptions };

/** How many jobs of an agent and tenant wait at most with the order `tenants`: so many of its tasks can start at once. */
export const MAX_TICKETS = 16;
/** The highest priority of a task. */
const MAX_PRIORITY = 100;
/** A job that ended and is kept would let BullMQ ignore the next one of the same id. */
const GONE = { removeOnComplete: true, removeOnFail: true };

/** Returns what a job asks for. Throws `SettingsError` if it is none of ours. */
export function readJob(data: unknown): JobData {
  const { agent, tenant, id, task } = (data ?? {}) as Record<string, unknown>;
  const isNamed = typeof agent === 'string' && typeof tenant === 'string';
  if (isNamed && (id === undefined || typeof id === 'string'))
    return { agent, tenant, ...(id !== undefined && { id }) };
  if (typeof task === 'object' && task !== null) return data as JobData;
  throw new SettingsError(
    'data',
    'expected { task } with a task to create; create tasks with the store, and put other jobs into another queue',
  );
}

/** Creates the jobs that hand out tasks. A job that already waits is ignored by BullMQ: `nextTicket` numbers them in turn. */
export function createJobs(
  tasks: readonly OfferedTask[],
  order: Order | undefined,
  nextTicket: () => number,
): NewJob[] {
  if (order === 'jobs') return tasks.map(toJob);
  const counts = new Map<string, number>();
  return tasks.flatMap(({ agent, tenant, startsAt }) => {
    const pair = JSON.stringify([agent, tenant]);
    const number = counts.get(pair) ?? 0;
    // A delayed task is offered when it is due.
    if (startsAt !== undefined || number >= MAX_TICKETS) return [];
    counts.set(pair, number + 1);
    return [createTicket({ agent, tenant }, nextTicket())];
  });
}

/** With `keepLastIfActive` one that is added while it is handed out waits again afterwards, behind those of other tenants. */
export function createTicket({ agent, tenant }: Offer, number: number): NewJob {
  const id = `${JSON.stringify([agent, tenant])} ${number}`;
  return { name: agent, data: { agent, tenant }, opts: { ...GONE, deduplication: { id, keepLastIfActive: true } } };
}

function toJob({ id, tenant, agent, priority, startsAt }: OfferedTask): NewJob {
  // BullMQ starts low numbers first, and jobs without a priority (0) before all others.
  const when = { priority: MAX_PRIORITY - priority, delay: Math.max(0, (startsAt ?? 0) - Date.now()) };
  return { name: agent, data: { agent, tenant, id }, opts: { ...GONE, jobId: id, ...when } };
}
