import type { Hint, OfferedTask, PushedOrder } from '../../store.ts';

/** A hint as the functions record it. */
export type HintRow = readonly [
  type: string,
  id: string,
  tenant?: string | null,
  worker?: string | null,
  conversation?: string | null,
  order?: PushedOrder | null,
];

/** A task to offer, as the functions show it. */
export type OfferRow = readonly [id: string, tenant: string, agent: string, priority: number, startsAt: number | null];

export function toOfferedTask([id, tenant, agent, priority, startsAt]: OfferRow): OfferedTask {
  return { id, tenant, agent, priority, ...(startsAt !== null && { startsAt }) };
}

export function toHint([type, id, tenant, worker, conversation, order]: HintRow): Hint {
  if (type === 'offer') return { type, task: toOfferedTask(order as unknown as OfferRow) };
  if (type === 'feed')
    return { type, consumer: id, part: Number(order ?? 0), ...(worker != null && { reader: worker }) };
  if (type === 'ready') return { type, worker: worker ?? '', agent: id };
  return {
    type: type as 'status',
    id,
    tenant: tenant!,
    ...(worker != null && { worker }),
    ...(conversation != null && { conversation }),
    ...(order != null && { order }),
  };
}
