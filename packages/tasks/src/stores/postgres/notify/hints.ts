import type { Hint, PushedOrder } from '../../../store.ts';

/** A hint as the functions record it and as it is sent: short, because notifications are limited. */
export type HintRow = readonly [
  type: string,
  id: string,
  tenant?: string | null,
  worker?: string | null,
  conversation?: string | null,
  order?: PushedOrder | null,
];

/** The server refuses longer notifications. */
export const MAX_PAYLOAD_BYTES = 7_999;
const RESYNC = '["resync"]';

/**
 * Returns the payload of a notification. If it is too long, leaves out the order; if still too long, sends `resync`.
 */
export function toPayload(hint: HintRow): string {
  const payload = JSON.stringify(hint);
  if (Buffer.byteLength(payload) <= MAX_PAYLOAD_BYTES) return payload;
  const short = JSON.stringify(hint.slice(0, 5));
  return Buffer.byteLength(short) <= MAX_PAYLOAD_BYTES ? short : RESYNC;
}

/** Every user of the database can notify, so payloads that cannot be parsed are ignored. */
export function hintOfPayload(payload: string): Hint | undefined {
  try {
    const hint = JSON.parse(payload) as unknown;
    return Array.isArray(hint) ? toHint(hint as unknown as HintRow) : undefined;
  } catch {
    return undefined;
  }
}

export function toHint([type, id, tenant, worker, conversation, order]: HintRow): Hint {
  if (type === 'resync') return { type };
  if (type === 'ready') return { type, worker: worker ?? '', domain: 0, agent: id };
  return {
    type: type as 'status',
    id,
    tenant: tenant!,
    ...(worker != null && { worker }),
    ...(conversation != null && { conversation }),
    ...(order != null && { order }),
  };
}
