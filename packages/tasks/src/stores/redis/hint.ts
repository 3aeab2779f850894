import type { Hint, PushedOrder } from '../../store.ts';
import { stopOf } from './replies.ts';
import type { SealOf } from './seal.ts';

type Fields = Readonly<Record<string, string | undefined>>;

/** What an entry of a stream says. The first entry of each only says that somebody listens. */
export function hintOf(flat: readonly string[], sealOf: SealOf): Hint | undefined {
  const fields: Record<string, string> = {};
  for (let i = 0; i < flat.length; i += 2) fields[flat[i]!] = flat[i + 1]!;
  const { type, id, tenant, worker, conversation, order: text } = fields as Fields;
  if (type === 'listen' || id === undefined || tenant === undefined) return undefined;
  const order = type === 'cancel' && text !== undefined ? orderOf(text, sealOf(id)) : undefined;
  return {
    type: type as 'status',
    id,
    tenant,
    ...(worker !== undefined && { worker }),
    ...(conversation !== undefined && { conversation }),
    ...(order !== undefined && { order }),
  };
}

const ORDER = /^(\d+) (drain|abort|kill) (\d+) (\d+) ([01]) ([\w-]+) (\{.*\})$/s;

/**
 * The order that a script wrote beside the task, in the same step. One that is not whole, or does not bear the seal of our
 * claim, is none: then the store is asked.
 */
function orderOf(text: string, ours: string): PushedOrder | undefined {
  const [, epoch, level, abortAt, killAt, undo, seal, reason] = ORDER.exec(text) ?? [];
  if (reason === undefined || seal !== ours) return undefined;
  try {
    return { epoch: Number(epoch), stop: stopOf([level!, reason, abortAt!, killAt!, undo!]) };
  } catch {
    return undefined;
  }
}
