import { randomUUID } from 'node:crypto';
import type { NewTask, TaskRecord, TaskRef, TaskStore } from '@whoa/tasks';
import type { ClaimRef } from '@whoa/tasks/store';

const TENANT = 'acme';
const LEASE_MS = 600_000;

/** Creates a task; throws if it was not created. */
export async function create(store: TaskStore, rest: Partial<NewTask> = {}): Promise<TaskRecord> {
  const receipt = await store.create({ tenant: TENANT, agent: 'a', input: 'hello', ...rest });
  if (receipt.result !== 'created') throw new Error(`not created: ${receipt.result}`);
  return receipt.task;
}

/** Claims a task for a separate session. */
async function claim(store: TaskStore, id: string, worker = 'w'): Promise<ClaimRef> {
  const request = { session: randomUUID(), claim: randomUUID(), worker, leaseMs: LEASE_MS };
  const answer = await store.claim(id, request);
  if (answer.result !== 'claimed') throw new Error(`not claimed: ${answer.result}`);
  return answer.claim;
}

export interface HeldTask {
  readonly id: string;
  readonly ref: TaskRef;
  readonly by: ClaimRef;
}

/** A task that a worker named `w` has. */
export async function running(store: TaskStore, rest: Partial<NewTask> = {}): Promise<HeldTask> {
  const { id, tenant } = await create(store, rest);
  return { id, ref: { tenant, id }, by: await claim(store, id) };
}
