import assert from 'node:assert/strict';
import type { TaskStatus } from '../status.ts';
import type { Claim, StoreOptions, TaskStore } from '../store.ts';
import type { NewTask, TaskRecord, TaskRef } from '../task.ts';

/** What a case works with: a fresh store, and time that passes when told. */
export interface CaseContext {
  readonly store: TaskStore;
  /** Lets the store's clock move on. */
  readonly advance: (ms: number) => Promise<void>;
  /** Another store on the same data, as another process would have it. */
  readonly openSecond: () => Promise<TaskStore>;
}

/** One thing every store must do. */
export interface ContractCase {
  /** A sentence about behaviour. */
  readonly title: string;
  readonly options?: StoreOptions;
  /** Needs what not every store has. */
  readonly needs?: 'second client';
  run(context: CaseContext): Promise<void>;
}

export const TENANT = 'acme';
export const LEASE_MS = 60_000;
export const SHORT_MS = 1_000;

/** Creates a task; a case that expects something else asks the store itself. */
export async function create(store: TaskStore, rest: Partial<NewTask> = {}): Promise<TaskRecord> {
  const receipt = await store.create({ tenant: TENANT, agent: 'assistant', input: 'hello', ...rest });
  return receipt.answer === 'created' ? receipt.task : assert.fail(`expected a task, got ${receipt.answer}`);
}

/** Claims a task, or fails. */
export async function claim(
  store: TaskStore,
  id: string,
  { worker = 'w1', leaseMs = LEASE_MS }: { worker?: string; leaseMs?: number } = {},
): Promise<Claim & { answer: 'claimed' }> {
  const claimed = await store.claim(id, worker, leaseMs);
  return claimed.answer === 'claimed' ? claimed : assert.fail(`expected a claim, got ${claimed.answer}`);
}

export interface Brought {
  readonly id: string;
  readonly ref: TaskRef;
  readonly epoch: number;
}

/** A task in a status, and the epoch that brought it there. */
export async function bring(store: TaskStore, status: TaskStatus): Promise<Brought> {
  const { id } = await create(store);
  const ref = { tenant: TENANT, id };
  if (status === 'init') return { id, ref, epoch: 1 };
  const { task } = await claim(store, id);
  const { epoch } = task;
  if (status === 'cancelling' || status === 'cancelled') await store.cancel(ref);
  if (status !== 'running' && status !== 'cancelling') await store.finish(id, epoch, { status });
  assert.equal((await store.get(ref))?.status, status);
  return { id, ref, epoch };
}

/** The record of a task that must exist. */
export async function record(store: TaskStore, id: string, tenant: string = TENANT): Promise<TaskRecord> {
  return (await store.get({ tenant, id })) ?? assert.fail(`task ${id} is gone`);
}

export async function assertFenced(work: Promise<unknown>): Promise<void> {
  await assert.rejects(work, (error: unknown) => (error as { code?: string }).code === 'LEASE_LOST');
}

/** Works with something and disposes of it, whatever happens. */
export async function withOwned<T extends AsyncDisposable>(owned: T, work: (owned: T) => Promise<void>): Promise<void> {
  try {
    await work(owned);
  } finally {
    await owned[Symbol.asyncDispose]();
  }
}
