import type { Json } from '@whoa/core';
import type { ClaimRef } from '../../delivery.ts';
import { toNewTask } from '../../rules/new-task.ts';
import { LIMITS } from '../../rules/rules.ts';
import type { FinalStatus } from '../../status.ts';
import type { CreateReceipt, StoreCancelReceipt } from '../../store.ts';
import type { TaskRecord, TaskRef } from '../../task.ts';
import type { CreateRequest, DriverBatch, End, StopRequest, StoreRules } from '../driver.ts';
import { Batcher, type BatcherOptions } from './batcher.ts';
import { type DatabaseFunctions, MAX_INT } from './functions.ts';
import { MAX_PAYLOAD_BYTES } from './notify/hints.ts';
import type { ShownOrders } from './rows.ts';

interface Finish {
  readonly claim: ClaimRef;
  readonly outcome: End['outcome'];
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

export function createBatches(functions: DatabaseFunctions, rules: StoreRules, ownChannel: string): Batches {
  return {
    creates: new Batcher({ ask: unspoiled(createMany(functions, rules)) }),
    finishes: new Batcher({ ask: unspoiled(finishMany(functions)) }),
    appends: new Batcher({ ask: unspoiled(appendMany(functions, rules)), maxInFlight: 1, gapMs: APPEND_GAP_MS }),
    cancels: new Batcher({ ask: unspoiled(cancelMany(functions, rules, ownChannel)) }),
  };
}

type Ask<Request, Answer> = BatcherOptions<Request, Answer | undefined>['ask'];

/** If the server refuses a batch because of one of its requests, all are sent separately. */
function unspoiled<Request, Answer>(ask: Ask<Request, Answer>): Ask<Request, Answer> {
  return (requests, isAlone) =>
    ask(requests, isAlone).catch((error: { severity?: string }) => {
      if (error.severity === undefined) throw error;
      return requests.map(() => undefined);
    });
}

/** Returns the first request for each task: the others are sent separately, after it. */
function firstOfEach<Request>(requests: readonly Request[], idOf: (request: Request) => string): Request[] {
  return [...new Map(requests.toReversed().map((one) => [idOf(one), one])).values()];
}

function toColumns(rows: readonly (readonly unknown[])[]): unknown[][] {
  return rows[0]!.map((_, index) => rows.map((row) => row[index]));
}

const CREATED = ['id', 'tenant', 'agent', 'key', 'worker', 'input', 'nonce', 'priority', 'notBefore', 'title'] as const;

function createMany(functions: DatabaseFunctions, rules: StoreRules): Ask<CreateRequest, CreateReceipt> {
  return async (requests) => {
    const unique = firstOfEach(requests, ({ id }) => id);
    const columns = CREATED.map((name) => unique.map((one) => one[name] ?? null));
    type Created = { readonly now: number; readonly created: readonly string[] };
    const { now, created } = await functions.call<Created>('create', 'create_many', [
      ...columns,
      Math.min(rules.maxReady, MAX_INT),
    ]);
    const ids = new Set(created);
    return requests.map((one) => (ids.has(one.id) && unique.includes(one) ? receiptOf(one, now) : undefined));
  };
}

/** Returns a newly created task as it is in the database. */
function receiptOf(request: CreateRequest, now: number): CreateReceipt {
  const { worker, notBefore, input } = request;
  const isLater = notBefore !== undefined && notBefore > now;
  const isHome = !isLater && worker !== undefined;
  const task: TaskRecord = {
    ...toNewTask(request, now),
    stage: isLater || isHome ? 'later' : 'ready',
    stageAt: isLater ? notBefore : isHome ? now + LIMITS.homeMs : now,
    inputs: [JSON.parse(input) as Json],
  };
  return { answer: 'created', task, superseded: [] };
}

function finishMany(functions: DatabaseFunctions): Ask<Finish, FinalStatus> {
  return async (requests) => {
    if (requests.length === 1) return [undefined];
    const unique = firstOfEach(requests, ({ claim }) => claim.id);
    const rows = unique.map(({ claim: { id, epoch, session, claim }, outcome }) => {
      const { status, reason, complete = null, ...rest } = outcome;
      const texts = [JSON.stringify(rest), reason === undefined ? null : JSON.stringify(reason)];
      return [id, epoch, session, claim, status, ...texts, complete];
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

/** Returns whether an append changes only its own row, and is small. */
export function isShareable(batch: DriverBatch): boolean {
  const { events, replaces, done } = batch;
  return events.length > 0 && replaces.length === 0 && done.length === 0 && bytesOf(batch) <= MAX_SHARED_BYTES;
}

function bytesOf({ events }: DriverBatch): number {
  return events.reduce((sum, event) => sum + Buffer.byteLength(event), 0);
}

function appendMany(functions: DatabaseFunctions, rules: StoreRules): Ask<Append, ShownOrders> {
  return async (requests) => {
    const unique = firstOfEach(requests, ({ claim }) => claim.id);
    const rows = unique.map(({ claim: { id, epoch, session, claim }, batch }) => {
      const { after, events, progress, activity = null } = batch;
      return [id, epoch, session, claim, after, events.length, bytesOf(batch), progress, activity];
    });
    const events = unique.flatMap(({ batch }, index) =>
      batch.events.map((event, offset) => [index + 1, batch.after + offset + 1, event]),
    );
    const written = await functions.call<readonly (readonly [number: number, orders: ShownOrders])[]>(
      'append',
      'append_many',
      [...toColumns(rows), rules.maxJournalBytes, ...toColumns(events)],
    );
    const orders = new Map(written.map(([number, one]) => [unique[number - 1], one]));
    return requests.map((one) => orders.get(one));
  };
}

/** A single request is notified with its commit. */
function cancelMany(
  functions: DatabaseFunctions,
  rules: StoreRules,
  ownChannel: string,
): Ask<Cancel, StoreCancelReceipt> {
  return async (requests, isAlone) => {
    const rows = requests.map(({ target, stop: { reason, level, abortMs, killMs, undo } }) => {
      const { at = null, ...given } = reason;
      return [target.tenant, target.id, JSON.stringify(given), at, level, abortMs, killMs, undo];
    });
    const rung = isAlone ? [ownChannel, MAX_PAYLOAD_BYTES] : [null, null];
    const receipts = await functions.call<readonly (StoreCancelReceipt | null)[]>('cancel', 'cancel_many', [
      ...toColumns(rows),
      () => rules.retentionMs,
      ...rung,
    ]);
    return receipts.map((receipt) => receipt ?? undefined);
  };
}
