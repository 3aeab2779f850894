import type { Json } from '@whoa/core';
import { Batcher, type BatcherOptions } from '../../bus/batcher.ts';
import type { ClaimRef } from '../../delivery/worker-store.ts';
import type { CreateReceipt, StoreCancelReceipt } from '../../store.ts';
import type { TaskRecord, TaskRef } from '../../task.ts';
import type { CreateRequest, DriverBatch, FinishRequest, StopRequest, StoreRules } from '../driver.ts';
import { toEndCode } from '../rules/end-code.ts';
import { toNewTask } from '../rules/new-task.ts';
import { LIMITS } from '../rules/rules.ts';
import type { FinalStatus } from '../rules/status.ts';
import { type DatabaseFunctions, MAX_INT } from './functions.ts';
import type { ShownOrders } from './rows.ts';

interface Finish {
  readonly claim: ClaimRef;
  readonly outcome: FinishRequest['outcome'];
}

interface Append {
  readonly claim: ClaimRef;
  readonly batch: DriverBatch;
}

interface Cancel {
  readonly target: TaskRef;
  readonly stop: StopRequest;
}

/** Requests that share a statement and a commit. `undefined` means that one must be sent separately. */
export interface Batches {
  /** Of tasks that are in no conversation. */
  readonly creates: Batcher<CreateRequest, CreateReceipt | undefined>;
  readonly finishes: Batcher<Finish, FinalStatus | undefined>;
  readonly appends: Batcher<Append, ShownOrders | undefined>;
  readonly cancels: Batcher<Cancel, StoreCancelReceipt | undefined>;
}

/** While tasks write at the same time, their appends wait so long for each other. */
const APPEND_GAP_MS = 10;
/** Larger appends are sent separately: their neighbours would wait for them. */
const MAX_SHARED_BYTES = 65_536;

export function createBatches(functions: DatabaseFunctions, rules: StoreRules): Batches {
  return {
    creates: new Batcher({ ask: unspoiled(createMany(functions, rules)) }),
    finishes: new Batcher({ ask: unspoiled(finishMany(functions)) }),
    appends: new Batcher({ ask: unspoiled(appendMany(functions, rules)), maxInFlight: 1, gapMs: APPEND_GAP_MS }),
    cancels: new Batcher({ ask: unspoiled(cancelMany(functions, rules)) }),
  };
}

type Ask<Request, Answer> = BatcherOptions<Request, Answer | undefined>['ask'];

/** If the server refuses a batch because of one of its requests, all are sent separately. */
function unspoiled<Request, Answer>(ask: Ask<Request, Answer>): Ask<Request, Answer> {
  return (requests) =>
    ask(requests).catch((error: { severity?: string }) => {
      if (error.severity === undefined) throw error;
      return requests.map(() => undefined);
    });
}

/** Returns the first request for each task: the others are sent separately, after it. */
function keepFirst<Request>(requests: readonly Request[], getId: (request: Request) => string): Request[] {
  return [...new Map(requests.toReversed().map((one) => [getId(one), one])).values()];
}

function toColumns<Row extends Readonly<Record<string, unknown>>>(rows: readonly Row[]): Record<keyof Row, unknown[]> {
  const names = Object.keys(rows[0]!) as (keyof Row)[];
  return Object.fromEntries(names.map((name) => [name, rows.map((row) => row[name])])) as Record<keyof Row, unknown[]>;
}

function createMany(functions: DatabaseFunctions, rules: StoreRules): Ask<CreateRequest, CreateReceipt> {
  return async (requests) => {
    const unique = keepFirst(requests, ({ id }) => id);
    const rows = unique.map(({ id, tenant, agent, key = null, preferredWorker = null, ...one }) => {
      const { title = null, notBefore = null, traceparent = null, startedBy = null } = one;
      const names = {
        ids: id,
        tenants: tenant,
        agents: agent,
        keys: key,
        preferred_workers: preferredWorker,
        titles: title,
        traceparents: traceparent,
        starters: startedBy,
      };
      return { ...names, inputs: one.input, nonces: one.nonce, priorities: one.priority, not_befores: notBefore };
    });
    type Created = { readonly now: number; readonly created: readonly string[] };
    const { now, created } = await functions.call<Created>('create', 'create_many', {
      ...toColumns(rows),
      max_ready: Math.min(rules.maxReady, MAX_INT),
    });
    const ids = new Set(created);
    return requests.map((one) => (ids.has(one.id) && unique.includes(one) ? toReceipt(one, now) : undefined));
  };
}

/** Returns a newly created task as it is in the database. */
function toReceipt(request: CreateRequest, now: number): CreateReceipt {
  const { preferredWorker, notBefore, input } = request;
  const isLater = notBefore !== undefined && notBefore > now;
  const isHome = !isLater && preferredWorker !== undefined;
  const task: TaskRecord = {
    ...toNewTask(request, now),
    stage: isLater || isHome ? 'delayed' : 'ready',
    stageAt: isLater ? notBefore : isHome ? now + LIMITS.preferredWorkerMs : now,
    inputs: [JSON.parse(input) as Json],
  };
  return { result: 'created', task, superseded: [] };
}

function finishMany(functions: DatabaseFunctions): Ask<Finish, FinalStatus> {
  return async (requests) => {
    const unique = keepFirst(requests, ({ claim }) => claim.id);
    const rows = unique.map(({ claim, outcome }) => {
      const { p_action: actions, rest: rests, reason: reasons, complete: completes, code: codes } = toEnding(outcome);
      return { ...toClaim(claim), actions, rests, reasons, completes, codes };
    });
    const ended = await functions.call<readonly (readonly [string, FinalStatus])[]>(
      'finish',
      'finish_many',
      toColumns(rows),
    );
    const endings = new Map(ended);
    return requests.map((one) => (unique.includes(one) ? endings.get(one.claim.id) : undefined));
  };
}

/** Returns the arguments for an end. */
export function toEnding(outcome: FinishRequest['outcome']): Record<'p_action' | 'rest', string> & EndingOptions {
  const { status, reason, isComplete = null, ...rest } = outcome;
  const why = reason === undefined ? null : JSON.stringify(reason);
  const code = toEndCode('failed', outcome) ?? null;
  return { p_action: status, rest: JSON.stringify(rest), reason: why, complete: isComplete, code };
}

interface EndingOptions extends Record<'reason' | 'code', string | null> {
  readonly complete: boolean | null;
}

function toClaim({ id, epoch, session, claim }: ClaimRef): Record<'ids' | 'epochs' | 'sessions' | 'claims', unknown> {
  return { ids: id, epochs: epoch, sessions: session, claims: claim };
}

/** Returns whether an append changes only its own row, and is small. */
export function isShareable(batch: DriverBatch): boolean {
  const { events, replaces, done, declined, asks, closes } = batch;
  const isPlain = [replaces, done, declined, asks, closes].every(({ length }) => length === 0);
  return events.length > 0 && isPlain && measureBytes(batch) <= MAX_SHARED_BYTES;
}

function measureBytes({ events }: DriverBatch): number {
  return events.reduce((sum, event) => sum + Buffer.byteLength(event), 0);
}

function appendMany(functions: DatabaseFunctions, rules: StoreRules): Ask<Append, ShownOrders> {
  return async (requests) => {
    const unique = keepFirst(requests, ({ claim }) => claim.id);
    const rows = unique.map(({ claim, batch }) => {
      const { after, events, resetsAttempts, activity = null } = batch;
      const size = { counts: events.length, sizes: measureBytes(batch) };
      return { ...toClaim(claim), afters: after, ...size, progresses: resetsAttempts, activities: activity };
    });
    const events = unique.flatMap(({ batch }, index) =>
      batch.events.map((event, offset) => ({
        ordinals: index + 1,
        positions: batch.after + offset + 1,
        events: event,
        said: batch.said[offset],
      })),
    );
    // Only their number if there are none.
    type Written = { now: number; written: readonly (readonly [ordinal: number, orders: ShownOrders | number])[] };
    const { now, written } = await functions.call<Written>('append', 'append_many', {
      ...toColumns(rows),
      max_bytes: rules.maxJournalBytes,
      ...toColumns(events),
    });
    const none = { now, stop: null, commands: null, readers: [], questions: null };
    const orders = new Map(
      written.map(([ordinal, one]) => [
        unique[ordinal - 1],
        typeof one === 'number' ? { ...none, orderNumber: one } : one,
      ]),
    );
    return requests.map((one) => orders.get(one));
  };
}

function cancelMany(functions: DatabaseFunctions, rules: StoreRules): Ask<Cancel, StoreCancelReceipt> {
  return async (requests) => {
    const rows = requests.map(({ target, stop: { reason, level, abortMs, killMs, undo } }) => {
      const { at = null, ...given } = reason;
      const asked = { givens: JSON.stringify(given), ats: at, levels: level, abort_mss: abortMs, kill_mss: killMs };
      return { tenants: target.tenant, ids: target.id, ...asked, undos: undo };
    });
    const receipts = await functions.call<readonly (StoreCancelReceipt | null)[]>('cancel', 'cancel_many', {
      ...toColumns(rows),
      retention_ms: () => rules.retentionMs,
    });
    return receipts.map((receipt) => receipt ?? undefined);
  };
}
