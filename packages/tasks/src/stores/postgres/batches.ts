import type { Json } from '@whoa/core';
import type { ClaimRef } from '../../delivery.ts';
import { toNewTask } from '../../rules/new-task.ts';
import { LIMITS } from '../../rules/rules.ts';
import type { FinalStatus } from '../../status.ts';
import type { CreateReceipt, StoreCancelReceipt } from '../../store.ts';
import type { TaskRecord, TaskRef } from '../../task.ts';
import type { CreateRequest, End, StopRequest } from '../driver.ts';
import { Batcher } from './batcher.ts';
import type { DatabaseFunctions } from './functions.ts';
import { MAX_PAYLOAD_BYTES } from './notify/hints.ts';

export interface Finish {
  readonly claim: ClaimRef;
  readonly outcome: End['outcome'];
}

export interface Cancel {
  readonly target: TaskRef;
  readonly stop: StopRequest;
}

/** Creates tasks that are in no conversation; `undefined` means that a task must be created separately. */
export function createBatch(
  functions: DatabaseFunctions,
  maxReady: number,
): Batcher<CreateRequest, CreateReceipt | undefined> {
  const ask = async (requests: readonly CreateRequest[]): Promise<readonly (CreateReceipt | undefined)[]> => {
    // Deduplicate: an id that is twice in a batch would be created once, but reported twice.
    const unique = [...new Map(requests.map((one) => [one.id, one])).values()];
    const column = <K extends keyof CreateRequest>(name: K) => unique.map((one) => one[name] ?? null);
    const columns = (
      ['id', 'tenant', 'agent', 'key', 'worker', 'input', 'nonce', 'priority', 'notBefore', 'title'] as const
    ).map(column);
    type Created = { readonly now: number; readonly created: readonly string[] };
    const { now, created } = await functions.call<Created>({
      operation: 'create',
      name: 'create_many',
      values: [...columns, maxReady],
    });
    const ids = new Set(created);
    return requests.map((request) =>
      ids.has(request.id) && unique.includes(request) ? receiptOf(request, now) : undefined,
    );
  };
  return new Batcher({ ask });
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

/** Ends tasks that are in no conversation; `undefined` means that a task must be ended separately. */
export function finishBatch(functions: DatabaseFunctions): Batcher<Finish, FinalStatus | undefined> {
  const ask = async (requests: readonly Finish[]): Promise<readonly (FinalStatus | undefined)[]> => {
    if (requests.length === 1) return [undefined];
    // Deduplicate: the second request for a task is sent separately.
    const unique = [...new Map(requests.map((one) => [one.claim.id, one])).values()];
    const claims = (['id', 'epoch', 'session', 'claim'] as const).map((name) => unique.map(({ claim }) => claim[name]));
    const outcomes = unique.map(({ outcome: { status, reason, complete = null, ...rest } }) => {
      return [status, JSON.stringify(rest), reason === undefined ? null : JSON.stringify(reason), complete] as const;
    });
    const ends = [0, 1, 2, 3].map((index) => outcomes.map((one) => one[index as 0]));
    const ended = await functions.call<readonly (readonly [string, FinalStatus])[]>({
      operation: 'finish',
      name: 'finish_many',
      values: [...claims, ...ends],
    });
    const endings = new Map(ended);
    return requests.map((one) => (unique.includes(one) ? endings.get(one.claim.id) : undefined));
  };
  return new Batcher({ ask });
}

/**
 * Asks tasks to stop; `undefined` means that one must be sent separately. A single request is notified with its commit.
 */
export function cancelBatch(
  functions: DatabaseFunctions,
  { ownChannel, retentionMs }: { readonly ownChannel: string; readonly retentionMs: () => number },
): Batcher<Cancel, StoreCancelReceipt | undefined> {
  const ask = async (
    requests: readonly Cancel[],
    isAlone: boolean,
  ): Promise<readonly (StoreCancelReceipt | undefined)[]> => {
    const rows = requests.map(({ target, stop: { reason, level, abortMs, killMs, undo } }) => {
      const { at = null, ...given } = reason;
      return [target.tenant, target.id, JSON.stringify(given), at, level, abortMs, killMs, undo] as const;
    });
    const columns = rows[0]!.map((_, index) => rows.map((row) => row[index]));
    const rung = isAlone ? [ownChannel, MAX_PAYLOAD_BYTES] : [null, null];
    const receipts = await functions.call<readonly (StoreCancelReceipt | null)[]>({
      operation: 'cancel',
      name: 'cancel_many',
      values: [...columns, retentionMs, ...rung],
      isRung: isAlone,
    });
    return receipts.map((receipt) => receipt ?? undefined);
  };
  return new Batcher({ ask });
}
