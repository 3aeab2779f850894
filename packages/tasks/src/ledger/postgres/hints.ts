import type { Hint, PushedOrder } from '../../store.ts';

/** A hint as the functions record it. */
export type HintRow = readonly [
  type: string,
  id: string,
  tenant?: string | null,
  worker?: string | null,
  conversation?: string | null,
  order?: PushedOrder | null,
];

export function toHint([type, id, tenant, worker, conversation, order]: HintRow): Hint {
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
