import type { Hint, PushedOrder } from '../../../store.ts';
import { toStopOrder } from './replies.ts';

const TYPES = new Set(['status', 'cancel', 'command', 'preferred', 'journal']);

/** Parses a message of a channel. Returns `undefined` for anything that the store did not publish. */
export function parseHint(text: string, domain: number): Hint | undefined {
  const parts = splitParts(text);
  const [type, id, tenant, worker, conversation, ordered] = parts;
  if (type === 'ready' && id !== undefined && tenant !== undefined) return { type, worker: id, domain, agent: tenant };
  if (!TYPES.has(type!) || id === undefined || tenant === undefined) return undefined;
  const order = type === 'cancel' && ordered !== undefined ? parseOrder(ordered) : undefined;
  return {
    type: type as 'status',
    id,
    tenant,
    ...(worker && { worker }),
    ...(conversation && { conversation }),
    ...(order !== undefined && { order }),
  };
}

/** What happened, the task, its tenant, then worker, conversation and order, if any. */
function splitParts(text: string): readonly string[] {
  try {
    const parts = JSON.parse(text) as string[];
    return parts.every((part) => typeof part === 'string') ? parts : [];
  } catch {
    return [];
  }
}

const ORDER = /^(\d+) (\S+) (\d+) (drain|abort|kill) (\d+) (\d+) ([01]) (\{.*\})$/s;

/**
 * Parses an order that a script published in the step that issued it. It is signed with the claim, which only the store
 * and the worker know: a forged order, or one replayed for another task, matches no held task. An incomplete order is
 * ignored.
 */
function parseOrder(text: string): PushedOrder | undefined {
  const [, epoch, claim, orderNumber, level, abortAt, killAt, undo, reason] = ORDER.exec(text) ?? [];
  if (reason === undefined) return undefined;
  try {
    const stop = toStopOrder([level!, reason, abortAt!, killAt!, undo!]);
    return { epoch: Number(epoch), claim: claim!, orderNumber: Number(orderNumber), stop };
  } catch {
    return undefined;
  }
}
