import type { Json } from '@whoa/core';
import { isFinalStatus } from '../ledger/rules/status.ts';
import type { ClientStore, ListPage } from '../store.ts';
import type { TaskRecord, TaskRef } from '../task.ts';

/** The result of requeueing a task. */
export type RequeueReceipt =
  /** `unchanged`: it was requeued before, and the task that was created then has not failed. */
  | { readonly result: 'requeued' | 'unchanged'; readonly task: TaskRecord }
  /** Only failed and cancelled tasks are requeued. */
  | { readonly result: 'not-failed'; readonly status: TaskRecord['status'] }
  /** Several messages were gathered into the task, and they are not all text. Send them again. */
  | { readonly result: 'merged-inputs' }
  /** The store or the conversation takes no more tasks now. */
  | { readonly result: 'full' }
  | { readonly result: 'not-found' };

/**
 * Creates a task with the input of one that failed or was cancelled. An end is final, so the old task stays as it is.
 * In a conversation the new task waits for its turn. Requeueing twice creates one task; if that has failed too, it is the
 * one that is requeued.
 *
 * @returns The new task, or why there is none.
 */
export async function requeueTask(store: ClientStore, ref: TaskRef): Promise<RequeueReceipt> {
  const old = await store.get(ref);
  if (old === undefined) return { result: 'not-found' };
  const { tenant, agent, conversation, priority, status, context, startedBy } = old;
  if (!isFinalStatus(status) || status === 'success') return { result: 'not-failed', status };
  const input = joinInputs(old.inputs);
  if (input === undefined) return { result: 'merged-inputs' };
  const key = `requeue ${old.id}`;
  const receipt = await store.create(
    { tenant, agent, conversation, priority, context, input, key, startedBy, keepsQuestions: true },
    { policy: 'queue' },
  );
  if (receipt.result === 'created') return { result: 'requeued', task: receipt.task };
  if (receipt.result !== 'duplicate') return { result: 'full' };
  const { task } = receipt;
  return task.status === 'failed' ? requeueTask(store, { tenant, id: task.id }) : { result: 'unchanged', task };
}

function joinInputs(inputs: readonly Json[]): Json | undefined {
  if (inputs.length === 1) return inputs[0];
  return inputs.length > 0 && inputs.every((input) => typeof input === 'string') ? inputs.join('\n\n') : undefined;
}

/**
 * Lists the poison tasks of a tenant, newest first: those that failed because their workers crashed again and again.
 * It reads a page of failed tasks and keeps those, so a page can be empty and still have a `next`.
 *
 * @returns A page.
 */
export async function listPoisonTasks(
  store: ClientStore,
  {
    tenant,
    limit,
    cursor,
  }: { readonly tenant: string; readonly limit?: number | undefined; readonly cursor?: string | undefined },
): Promise<ListPage> {
  const page = await store.list({
    tenant,
    status: 'failed',
    ...(limit !== undefined && { limit }),
    ...(cursor !== undefined && { cursor }),
  });
  return { ...page, tasks: page.tasks.filter(({ outcome }) => outcome?.error?.code === 'WORKERS_LOST') };
}
