import { rankOf } from '@whoa/core';
import type { Hint, PushedOrder } from '../../store.ts';
import { stopOf } from './replies.ts';

type Fields = Readonly<Record<string, string | undefined>>;

/** What an entry of a stream says. The first entry of each only says that somebody listens. */
export function hintOf(flat: readonly string[]): Hint | undefined {
  const fields: Record<string, string> = {};
  for (let i = 0; i < flat.length; i += 2) fields[flat[i]!] = flat[i + 1]!;
  const { type, id, tenant, worker, conversation } = fields as Fields;
  if (type === 'listen' || id === undefined || tenant === undefined) return undefined;
  const order = type === 'cancel' ? orderOf(fields) : undefined;
  return {
    type: type as 'status',
    id,
    tenant,
    ...(worker !== undefined && { worker }),
    ...(conversation !== undefined && { conversation }),
    ...(order !== undefined && { order }),
  };
}

/**
 * The order that a script wrote beside the task, in the same step. Whoever could forge it may write the store's keys, and so
 * the task itself. One that is not whole is none: then the store is asked.
 */
function orderOf({ epoch, stopLevel, stopReason, abortAt, killAt, undo }: Fields): PushedOrder | undefined {
  if (stopReason === undefined) return undefined;
  try {
    const stop = stopOf([stopLevel, stopReason, abortAt, killAt, undo] as string[]);
    const isWhole = rankOf(stop.level) > 0 && stop.killAt >= stop.abortAt && typeof stop.reason.kind === 'string';
    return isWhole ? { epoch: Number(epoch), stop } : undefined;
  } catch {
    return undefined;
  }
}
