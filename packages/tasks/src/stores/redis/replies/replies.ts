import type { CancelReason, Json, StopLevel } from '@whoa/core';
import type {
  ClaimResult,
  HeartbeatResult,
  HeldTask,
  Orders,
  ParkReceipt,
  SweepResult,
  TakenTask,
  TakeResult,
  TaskLoad,
} from '../../../delivery.ts';
import { parseActivity } from '../../../rules/activity.ts';
import { toContext, toNewTask, toTitle } from '../../../rules/new-task.ts';
import type { FinalStatus, TaskStatus } from '../../../status.ts';
import type { CreateReceipt, FinishResult, SendReceipt, StoreCancelReceipt } from '../../../store.ts';
import type { NumberedCommand, Stage, StopOrder, TaskRecord, TaskSummary } from '../../../task.ts';
import type { CreateRequest, DriverReceipt } from '../../driver.ts';
import type { Reply } from '../connection/connection.ts';
import { toQuestions } from './question-replies.ts';

export type Flat = readonly string[];

/**
 * A head from the scripts: the hash, an outcome that was too large for it, and the commands; a record also has inputs
 * and a context.
 */
type HeadReply = readonly [Flat, string | null, Flat, Flat?, string?, Flat?];
type OrdersReply = readonly [string, string, readonly string[] | null, Flat, string, Flat?];
type LoadReply = readonly [Flat, Flat, string];
type TakenReply = readonly [HeadReply, OrdersReply, LoadReply | null];

const TEXTS = new Set(
  'id tenant agent conversation title key nonce steered status stage worker policy traceparent startedBy'.split(' '),
);
/** Fields that are parts of others, or only for the store and its worker. */
const PARTS = new Set([
  'superseded',
  'activity',
  'stopLevel',
  'stopReason',
  'abortAt',
  'killAt',
  'undo',
  'outcome',
  'session',
  'claim',
  'released',
  'charges',
  'isCharged',
  'lostClaim',
  'hasPendingOrders',
  'input',
  'inputOwner',
  'context',
  'questions',
  'keepsQuestions',
]);

const NOTHING_YET = {
  epoch: 0,
  attempts: 0,
  crashes: 0,
  commandsSent: 0,
  orderNumber: 0,
  position: 0,
  journalBytes: 0,
};

export function toSummary(reply: Reply): TaskSummary {
  return toSummaryParts(reply as unknown as HeadReply).head;
}

export function toRecord(reply: Reply): TaskRecord {
  const { head } = toSummaryParts(reply as unknown as HeadReply);
  const [, , , inputs, context, asked] = reply as unknown as HeadReply;
  const questions = asked && { questions: toQuestions(asked) };
  return { ...head, inputs: parseJsons(inputs!), ...toContext(context), ...questions };
}

function toSummaryParts([flat, outcome, commands]: HeadReply): {
  head: TaskSummary;
  parts: Readonly<Record<string, string>>;
} {
  const head: Record<string, unknown> = { ...NOTHING_YET, priority: 0 };
  const parts: Record<string, string> = {};
  for (let i = 0; i < flat.length; i += 2) {
    const [name, value] = [flat[i]!, flat[i + 1]!];
    if (TEXTS.has(name)) head[name] = value;
    else if (PARTS.has(name)) parts[name] = value;
    else head[name] = Number(value);
  }
  head['commands'] = toCommands(commands);
  // The last stage stays in the hash; it has no meaning after the end.
  if (head['endedAt'] !== undefined) delete head['stage'];
  if (head['stage'] !== 'ready' && head['stage'] !== 'delayed') delete head['stageAt'];
  const { input, activity, superseded, stopLevel, questions } = parts;
  const title = input === undefined ? undefined : toTitle(JSON.parse(input));
  if (title !== undefined) head['title'] = title;
  if (activity !== undefined) head['activity'] = parseActivity(activity, head as unknown as TaskSummary);
  if (questions !== undefined) head['hasAsked'] = true;
  const waiting = Number.parseInt(questions ?? '0', 10);
  if (waiting > 0) head['waiting'] = waiting;
  if (superseded !== undefined) head['superseded'] = superseded.split(' ');
  if (stopLevel !== undefined) {
    const { stopReason, abortAt, killAt, undo } = parts;
    head['stop'] = toStopOrder([stopLevel, stopReason!, abortAt!, killAt!, undo!]);
  }
  const ended = outcome ?? parts['outcome'];
  if (ended !== undefined) head['outcome'] = JSON.parse(ended);
  return { head: head as unknown as TaskSummary, parts };
}

export function parseJsons(texts: Flat): Json[] {
  return texts.map((text) => JSON.parse(text) as Json);
}

/** Commands are stored as the id of their waiting task, a line feed, and the command. */
function toCommands(flat: Flat): NumberedCommand[] {
  if (flat.length === 0) return [];
  const commands: NumberedCommand[] = [];
  for (let i = 0; i < flat.length; i += 2) {
    const text = flat[i + 1]!;
    const command = JSON.parse(text.slice(text.indexOf('\n') + 1)) as NumberedCommand;
    commands.push({ ...command, number: Number(flat[i]) });
  }
  return commands.toSorted((a, b) => a.number - b.number);
}

export function toStopOrder([level, reason, abortAt, killAt, undo]: readonly string[]): StopOrder {
  return {
    level: level as StopLevel,
    reason: JSON.parse(reason!) as CancelReason,
    abortAt: Number(abortAt),
    killAt: Number(killAt),
    undo: undo === '1',
  };
}

export function toOrders(reply: Reply): Orders {
  const [now, orderNumber, stop, commands, watched, questions] = reply as unknown as OrdersReply;
  return {
    now: Number(now),
    orderNumber: Number(orderNumber),
    ...(stop !== null && { stop: toStopOrder(stop) }),
    commands: toCommands(commands),
    isWatched: watched === '1',
    ...(questions !== undefined && { questions: toQuestions(questions) }),
  };
}

export function toLoad(reply: Reply): TaskLoad {
  const [inputs, history, context] = reply as unknown as LoadReply;
  return { inputs: parseJsons(inputs), history: parseJsons(history), ...toContext(context) };
}

function toTaken(reply: Reply): TakenTask {
  const [task, orders, load] = reply as unknown as TakenReply;
  const { head, parts } = toSummaryParts(task);
  const { id, epoch } = head;
  return {
    claim: { id, epoch, session: parts['session']!, claim: parts['claim']! },
    task: head,
    orders: toOrders(orders as unknown as Reply),
    ...(load !== null && { load: toLoad(load as unknown as Reply) }),
  };
}

export function toTakeResult(reply: Reply): TakeResult {
  const [answer, tasks, repeat, nextAt, expired, now] = reply as [TakeResult['result'], Reply[], ...string[]];
  if (answer !== 'taken') return { result: answer };
  return {
    result: answer,
    tasks: tasks.map(toTaken),
    isRepeat: repeat === '1',
    ...(nextAt !== null && { nextReadyAt: Number(nextAt) }),
    shouldSweep: expired === '1',
    now: Number(now),
  };
}

export function toClaimResult(reply: Reply): ClaimResult {
  const [answer, rest] = reply as [ClaimResult['result'], Reply | undefined];
  switch (answer) {
    case 'claimed':
      return { result: answer, ...toTaken(rest!) };
    case 'held':
      return { result: answer, until: Number(rest) };
    case 'waiting':
      return rest === undefined ? { result: answer } : { result: answer, until: Number(rest) };
    case 'too-late':
      return { result: answer, status: rest as FinalStatus };
    default:
      return { result: answer };
  }
}

export function toHeartbeatResult(reply: Reply): HeartbeatResult {
  const [answer, replies, more, shouldReconcile, expired, now] = reply as [
    HeartbeatResult['result'],
    Reply[],
    ...string[],
  ];
  if (answer === 'session-ended') return { result: answer };
  const orders = (replies as unknown as [string, string, string, Reply][]).map(([id, epoch, claim, ordered]) => {
    return { id, epoch: Number(epoch), claim, ...toOrders(ordered) };
  });
  return {
    result: answer,
    orders,
    hasMore: more === '1',
    shouldReconcile: shouldReconcile === '1',
    shouldSweep: expired === '1',
    now: Number(now),
  };
}

export function toHeldTasks(reply: Reply): HeldTask[] {
  return (reply as unknown as [string, string, string][]).map(([id, epoch, claim]) => {
    return { id, epoch: Number(epoch), claim };
  });
}

export function toSweepResult(reply: Reply): SweepResult {
  const [reclaimed, more, nextAt, now] = reply as [string, string, string | null, string];
  return {
    reclaimed: Number(reclaimed),
    hasMore: more === '1',
    ...(nextAt !== null && { nextExpiryAt: Number(nextAt) }),
    now: Number(now),
  };
}

export function toParkReceipt(reply: readonly Reply[]): ParkReceipt {
  const [answer, orders] = reply as [ParkReceipt['result'], Reply];
  return answer === 'busy' ? { result: answer, orders: toOrders(orders) } : { result: answer };
}

/** Returns the receipt, and whom to notify of the end, if this was it. */
export function toFinishResult(reply: Reply): { receipt: FinishResult; notified: readonly string[] | undefined } {
  type Parts = [FinishResult['result'], FinalStatus, (string | null)?, (readonly string[])?];
  const [answer, status, successor, notified] = reply as unknown as Parts;
  return { receipt: { result: answer, status, ...(successor != null && { successor }) }, notified };
}

export function toSendReceipt(reply: Reply): SendReceipt {
  const [answer, value] = reply as [SendReceipt['result'], string];
  if (answer === 'accepted') return { result: answer, number: Number(value) };
  return answer === 'too-late' ? { result: answer, status: value as TaskStatus } : { result: answer };
}

export function toCreateReceipt(reply: Reply, request: CreateRequest): DriverReceipt {
  const [answer, first, second, third] = reply as [CreateReceipt['result'] | 'new', Reply, Reply, string | null];
  switch (answer) {
    case 'new':
      return { result: 'created', task: toCreatedTask(request, reply as string[]), superseded: [] };
    case 'created':
      return {
        result: answer,
        task: toRecord(first),
        superseded: second as Flat,
        ...(third !== null && { steered: third }),
      };
    case 'duplicate':
      return { result: answer, task: toRecord(first) };
    case 'full':
      return { result: answer, what: first as 'tasks', limit: Number(second) };
    default:
      return { result: answer };
  }
}

/** Builds the record of a new task: the store returned only what its creator did not know. */
function toCreatedTask(request: CreateRequest, [, createdAt, stage, stageAt]: readonly string[]): TaskRecord {
  return {
    ...toNewTask(request, Number(createdAt)),
    stage: stage as Stage,
    stageAt: Number(stageAt),
    inputs: [JSON.parse(request.input) as Json],
    ...toContext(request.context),
  };
}

export function toCancelReceipt(reply: Reply): StoreCancelReceipt {
  const [answer, status, level, reason, killAt] = reply as [StoreCancelReceipt['result'], ...string[]];
  if (answer === 'not-found') return { result: answer };
  if (answer === 'too-late') return { result: answer, status: status as FinalStatus };
  return {
    result: answer,
    status: status as TaskStatus,
    level: level as StopLevel,
    reason: JSON.parse(reason!) as CancelReason,
    killAt: Number(killAt),
  };
}
