import assert from 'node:assert/strict';
import type { ClaimRef, ClaimRequest, ClaimResult, Orders, TaskLoad } from '../delivery/worker-store.ts';
import type { TaskStatus } from '../ledger/rules/status.ts';
import type { StoreOptions } from '../ledger/store-options.ts';
import type { TaskStore } from '../store.ts';
import type { NewTask, TaskRecord, TaskRef, TaskSummary } from '../task.ts';

/** What a case works with: a fresh store, and time that passes when told. */
export interface CaseContext {
  readonly store: TaskStore;
  /** Lets the store's clock move on. */
  readonly advance: (ms: number) => Promise<void>;
  /** Another store on the same data, as another process would have it. */
  readonly openSecond: (options?: StoreOptions) => Promise<TaskStore>;
  /** Marks the data as a version with this format would. */
  readonly setFormat: (format: number) => Promise<void>;
}

/** One thing every store must do. */
export interface ContractCase {
  /** A sentence about behaviour. */
  readonly title: string;
  readonly options?: StoreOptions;
  /** Needs what not every store has. */
  readonly needs?: 'second client' | 'another format' | 'live words';
  run(context: CaseContext): Promise<void>;
}

export const TENANT = 'acme';
export const LEASE_MS = 60_000;
export const SHORT_MS = 1_000;

/** Creates a task; a case that expects something else asks the store itself. */
export async function create(store: TaskStore, rest: Partial<NewTask> = {}): Promise<TaskRecord> {
  const receipt = await store.create({ tenant: TENANT, agent: 'assistant', input: 'hello', ...rest });
  return receipt.result === 'created' ? receipt.task : assert.fail(`expected a task, got ${receipt.result}`);
}

let made = 0;

/** A name that no other thing has. */
export function fresh(prefix: string): string {
  return `${prefix}-${++made}`;
}

type ClaimOptions = Partial<Omit<ClaimRequest, 'session'>> & { readonly session?: string };

/** Asks for a task, in a separate session unless one is named. */
export function tryClaim(store: TaskStore, id: string, asked: ClaimOptions = {}): Promise<ClaimResult> {
  return store.claim(id, {
    worker: 'w1',
    leaseMs: LEASE_MS,
    session: fresh('session'),
    claim: fresh('claim'),
    ...asked,
  });
}

/** Claims a task, or fails. */
export async function claim(store: TaskStore, id: string, asked: ClaimOptions = {}): Promise<Claimed> {
  const answer = await tryClaim(store, id, asked);
  if (answer.result !== 'claimed') return assert.fail(`expected a claim, got ${answer.result}`);
  const { claim: by, task, orders } = answer;
  toClaims(store, id).push(by);
  return { by, task, orders, ...(answer.load ?? (await store.load(by))) };
}

const CLAIMS = new WeakMap<TaskStore, Map<string, ClaimRef[]>>();

function toClaims(store: TaskStore, id: string): ClaimRef[] {
  const ofStore = CLAIMS.get(store) ?? new Map<string, ClaimRef[]>();
  const claims = ofStore.get(id) ?? [];
  CLAIMS.set(store, ofStore.set(id, claims));
  return claims;
}

/** The first, second, … claim that a case made of a task. */
export function nth(store: TaskStore, id: string, number: number): ClaimRef {
  return toClaims(store, id)[number - 1] ?? assert.fail(`task ${id} was not claimed ${number} times`);
}

/** A claim with everything its worker needs. */
export interface Claimed extends TaskLoad {
  readonly by: ClaimRef;
  readonly task: TaskSummary;
  readonly orders: Orders;
}

export interface Brought {
  readonly id: string;
  readonly ref: TaskRef;
  /** Who brought it there; of a task that was never claimed, a claim that does not exist. */
  readonly by: ClaimRef;
}

/** A task in a status, and the claim that brought it there. */
export async function bring(store: TaskStore, status: TaskStatus): Promise<Brought> {
  const { id } = await create(store);
  const ref = { tenant: TENANT, id };
  if (status === 'init') return { id, ref, by: { id, epoch: 1, session: 'none', claim: 'none' } };
  const { by } = await claim(store, id);
  if (status === 'cancelling' || status === 'cancelled') await store.cancel(ref);
  if (status !== 'running' && status !== 'cancelling') await store.finish(by, { status });
  assert.equal((await store.get(ref))?.status, status);
  return { id, ref, by };
}

/** What the holder of a claim should know now. */
export async function ordersFor(store: TaskStore, by: ClaimRef): Promise<Orders> {
  const { position } = await record(store, by.id);
  return store.append(by, { after: position, events: [] });
}

/** Lets every lease of so long run out, and frees what was held. The quiet before counts as an outage: it takes two. */
export async function expire(
  { store, advance }: Pick<CaseContext, 'store' | 'advance'>,
  leaseMs: number,
): Promise<void> {
  for (let i = 0; i < 2; i++) {
    await advance(leaseMs);
    while ((await store.sweep()).hasMore);
  }
}

/** The record of a task that must exist. */
export async function record(store: TaskStore, id: string, tenant: string = TENANT): Promise<TaskRecord> {
  return (await store.get({ tenant, id })) ?? assert.fail(`task ${id} is gone`);
}

export async function assertFenced(work: Promise<unknown>): Promise<void> {
  await assert.rejects(work, (error: unknown) => (error as { code?: string }).code === 'LEASE_LOST');
}

/** Works with something and disposes of it, whatever happens. */
export async function usingResource<T extends AsyncDisposable>(
  owned: T,
  work: (owned: T) => Promise<void>,
): Promise<void> {
  try {
    await work(owned);
  } finally {
    await owned[Symbol.asyncDispose]();
  }
}
