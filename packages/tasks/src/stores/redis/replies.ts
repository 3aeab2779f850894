import type { CancelReason, Json, Policy, StopLevel } from '@whoa/core';
import type { FinalStatus, TaskStatus } from '../../status.ts';
import type { Claim, CreateReceipt, Orders, StoreCancelReceipt } from '../../store.ts';
import type {
  ConversationRecord,
  ConversationRef,
  JournalEntry,
  NumberedCommand,
  StopOrder,
  TaskRecord,
} from '../../task.ts';
import type { Reply } from './calls.ts';

type Flat = readonly string[];

/** A record as the scripts give it: the hash, the inputs, the outcome, the commands. */
type RecordReply = readonly [Flat, Flat, string | null, Flat];
type OrdersReply = readonly ['orders', string, string, readonly string[] | null, Flat, string];

type LineReply = readonly [string, string | null, string | null, Flat, Flat];

const TEXTS = new Set(['id', 'tenant', 'agent', 'conversation', 'key', 'nonce', 'steered', 'status', 'worker']);
/** These are parts of something, or the store's own. */
const PARTS = new Set([
  'superseded',
  'waiting',
  'heldUntil',
  'heldPolicy',
  'stopLevel',
  'stopReason',
  'abortAt',
  'killAt',
  'undo',
  'forgetAt',
]);

export function recordOf(reply: Reply): TaskRecord {
  const [flat, inputs, outcome, commands] = reply as RecordReply;
  const record: Record<string, unknown> = {};
  const parts: Record<string, string> = {};
  for (let i = 0; i < flat.length; i += 2) {
    const [name, value] = [flat[i]!, flat[i + 1]!];
    if (TEXTS.has(name)) record[name] = value;
    else if (PARTS.has(name)) parts[name] = value;
    // Nobody is shown the seal: who has it can give orders.
    else if (name !== 'seal') record[name] = Number(value);
  }
  record['inputs'] = inputs.map((text) => JSON.parse(text) as Json);
  record['commands'] = commandsOf(commands);
  record['journalBytes'] ??= 0;
  if ('superseded' in parts) record['superseded'] = parts['superseded']!.split(' ');
  if ('waiting' in parts) record['waiting'] = true;
  if ('heldUntil' in parts) {
    record['held'] = { until: Number(parts['heldUntil']), policy: parts['heldPolicy'] as Policy };
  }
  if ('stopLevel' in parts) {
    const { stopLevel, stopReason, abortAt, killAt, undo } = parts as Record<string, string>;
    record['stop'] = stopOf([stopLevel!, stopReason!, abortAt!, killAt!, undo!]);
  }
  if (outcome !== null) record['outcome'] = JSON.parse(outcome);
  return record as unknown as TaskRecord;
}

/** Commands are kept as the task they wait with, a line's end, and the command. */
function commandsOf(flat: Flat): NumberedCommand[] {
  if (flat.length === 0) return [];
  const commands: NumberedCommand[] = [];
  for (let i = 0; i < flat.length; i += 2) {
    const text = flat[i + 1]!;
    const command = JSON.parse(text.slice(text.indexOf('\n') + 1)) as NumberedCommand;
    commands.push({ ...command, number: Number(flat[i]) });
  }
  return commands.toSorted((a, b) => a.number - b.number);
}

export function stopOf([level, reason, abortAt, killAt, undo]: readonly string[]): StopOrder {
  return {
    level: level as StopLevel,
    reason: JSON.parse(reason!) as CancelReason,
    abortAt: Number(abortAt),
    killAt: Number(killAt),
    undo: undo === '1',
  };
}

export function ordersOf(reply: Reply): Orders {
  const [, now, leaseUntil, stop, commands, watched] = reply as OrdersReply;
  return {
    now: Number(now),
    leaseUntil: Number(leaseUntil),
    ...(stop !== null && { stop: stopOf(stop) }),
    commands: commandsOf(commands),
    watched: watched === '1',
  };
}

export function createReceiptOf(reply: Reply): CreateReceipt {
  const [answer, task, superseded, steered] = reply as [CreateReceipt['answer'], Reply, Flat, string | null];
  if (answer === 'rejected') return { answer };
  if (answer === 'duplicate') return { answer, task: recordOf(task) };
  return { answer, task: recordOf(task), superseded, ...(steered !== null && { steered }) };
}

export function claimOf(reply: Reply): Claim {
  const [answer, first, orders, history] = reply as [Claim['answer'], Reply | undefined, Reply, Flat];
  switch (answer) {
    case 'claimed':
      return {
        answer,
        task: recordOf(first!),
        orders: ordersOf(orders),
        history: history.map((text) => JSON.parse(text) as Json),
      };
    case 'held':
      return { answer, until: Number(first) };
    case 'waiting':
      return first === undefined ? { answer } : { answer, until: Number(first) };
    case 'too-late':
      return { answer, status: first as FinalStatus };
    default:
      return { answer };
  }
}

export function cancelReceiptOf(reply: Reply): StoreCancelReceipt {
  const [answer, status, level, reason, killAt] = reply as [StoreCancelReceipt['answer'], ...string[]];
  if (answer === 'unknown') return { answer };
  if (answer === 'too-late') return { answer, status: status as FinalStatus };
  return {
    answer,
    status: status as TaskStatus,
    level: level as StopLevel,
    reason: JSON.parse(reason!) as CancelReason,
    killAt: Number(killAt),
  };
}

/** An entry is kept at its position in a stream, as epoch, time and event. */
export function entriesOf(reply: Reply): JournalEntry[] {
  return (reply as readonly (readonly [string, Flat])[]).map(([place, [, text = '']]) => {
    const [epochEnd, atEnd] = [text.indexOf(' '), text.indexOf(' ', text.indexOf(' ') + 1)];
    return {
      position: Number.parseInt(place, 10),
      epoch: Number(text.slice(0, epochEnd)),
      at: Number(text.slice(epochEnd + 1, atEnd)),
      event: JSON.parse(text.slice(atEnd + 1)) as Json,
    };
  });
}

export function conversationOf(
  reply: Reply,
  { tenant, conversation }: ConversationRef,
): ConversationRecord | undefined {
  if (reply === null) return undefined;
  const [changedAt, current, gathering, history, waiting] = reply as LineReply;
  return {
    tenant,
    conversation,
    ...(current !== null && { current }),
    waiting,
    ...(gathering !== null && { gathering }),
    history: history.map((text) => JSON.parse(text) as Json),
    changedAt: Number(changedAt),
  };
}
