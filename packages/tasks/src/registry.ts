import type { CancelOptions, CancelReason, CancelReasonInit } from '@whoa/core';
import type { FinalStatus, TaskStatus } from './status.ts';
import type { StoreCancelReceipt, TaskStore } from './store.ts';
import type { TaskRecord } from './task.ts';

/** What a registry says about a task. */
export interface RegisteredTask {
  readonly taskId: string;
  readonly status: TaskStatus;
  readonly reason: CancelReason | undefined;
  readonly epoch: number;
}

/** What became of a `setStatus`. */
export type SetStatusReceipt =
  | { readonly answer: 'set' | 'already'; readonly status: FinalStatus }
  /** The epoch is not the one that works on the task now. */
  | { readonly answer: 'refused' };

/** A small view of one tenant's tasks in a store: who may run, who was cancelled. An object you pass, never a singleton. */
export interface CancellationRegistry {
  /** Makes a task known and takes it, unless somebody has: then `epoch` is `undefined`. */
  register(options: {
    key: string;
    worker: string;
    leaseMs?: number;
  }): Promise<{ taskId: string; epoch: number | undefined }>;
  /** Ends a task. Only whoever works on it now can. */
  setStatus(taskId: string, status: FinalStatus, epoch: number): Promise<SetStatusReceipt>;
  cancel(taskId: string, reason?: CancelReasonInit, options?: CancelOptions): Promise<StoreCancelReceipt>;
  /** True from the moment a cancel was accepted. */
  isCancelled(taskId: string): Promise<boolean>;
  get(taskId: string): Promise<RegisteredTask | undefined>;
}

const LEASE_MS = 15_000;

/** Creates a registry for the tasks of one tenant. */
export function createCancellationRegistry({
  store,
  tenant,
}: {
  store: TaskStore;
  tenant: string;
}): CancellationRegistry {
  const find = (id: string): Promise<TaskRecord | undefined> => store.get({ tenant, id });
  return {
    async register({ key, worker, leaseMs = LEASE_MS }) {
      const receipt = await store.create({ tenant, agent: 'registered', input: null, key, worker });
      if (receipt.answer === 'rejected')
        throw new Error('A task without a conversation was rejected; this is a bug in the store');
      const { id } = receipt.task;
      const claim = await store.claim(id, worker, leaseMs);
      return { taskId: id, epoch: claim.answer === 'claimed' ? claim.task.epoch : undefined };
    },
    async setStatus(taskId, status, epoch) {
      try {
        const { answer, status: now } = await store.finish(taskId, epoch, { status });
        return { answer: answer === 'finished' ? 'set' : 'already', status: now };
      } catch (error) {
        if ((error as { code?: string }).code !== 'LEASE_LOST') throw error;
        return { answer: 'refused' };
      }
    },
    cancel: (id, reason = {}, options = {}) => store.cancel({ tenant, id }, reason, options),
    async isCancelled(id) {
      const status = (await find(id))?.status;
      return status === 'cancelling' || status === 'cancelled';
    },
    async get(id) {
      const task = await find(id);
      return (
        task && {
          taskId: id,
          status: task.status,
          reason: task.stop?.reason ?? task.outcome?.reason,
          epoch: task.epoch,
        }
      );
    },
  };
}
