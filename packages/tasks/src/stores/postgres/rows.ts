import type { CancelReason, Json, Policy, StopLevel } from '@whoa/core';
import type { ClaimRef, Orders, TakenTask, TaskLoad } from '../../delivery.ts';
import { toActivity } from '../../rules/activity.ts';
import { toContext } from '../../rules/new-task.ts';
import type { TaskStatus } from '../../status.ts';
import type { NumberedCommand, Stage, StopOrder, TaskCommand, TaskHead, TaskOutcome, TaskRecord } from '../../task.ts';

type ShownCommands = readonly (readonly [number: number, command: TaskCommand])[];

/** A row of `tasks` as `row_to_json` shows it. */
interface TaskRow {
  readonly id: string;
  readonly tenant: string;
  readonly agent: string;
  readonly conversation: string | null;
  readonly title: string | null;
  readonly key: string | null;
  readonly nonce: string | null;
  readonly superseded: readonly string[] | null;
  readonly steered: string | null;
  readonly priority: number;
  readonly not_before: number | null;
  readonly deadline: number | null;
  readonly status: TaskStatus;
  readonly stage: Stage | null;
  readonly stage_at: number | null;
  readonly policy: Policy | null;
  readonly epoch: number;
  readonly attempts: number;
  readonly deaths: number;
  readonly worker: string | null;
  readonly session: string | null;
  readonly claim: string | null;
  readonly created_at: number;
  readonly started_at: number | null;
  readonly ended_at: number | null;
  readonly stop_level: StopLevel | null;
  readonly stop_reason: CancelReason | null;
  readonly stop_abort_at: number | null;
  readonly stop_kill_at: number | null;
  readonly stop_undo: boolean | null;
  readonly commands_sent: number;
  readonly order_number: number;
  readonly position: number;
  readonly journal_bytes: number;
  readonly activity: string | null;
  readonly watched_until: number | null;
  readonly outcome: Omit<TaskOutcome, 'status'> | null;
  readonly outcome_reason: CancelReason | null;
  readonly outcome_complete: boolean | null;
}

export interface ShownHead {
  readonly row: TaskRow;
  readonly commands: ShownCommands | null;
}

export interface ShownRecord extends ShownHead {
  readonly inputs: readonly Json[];
  readonly context: string | null;
}

export interface ShownLoad extends Omit<TaskLoad, 'context'> {
  readonly context: string | null;
}

export interface ShownTaken extends ShownHead {
  readonly load: ShownLoad | null;
}

export interface ShownOrders {
  readonly now: number;
  readonly orderNumber: number;
  readonly stop: StopOrder | null;
  readonly commands: ShownCommands | null;
  readonly watched: boolean;
}

export function headOf({ row, commands }: ShownHead): TaskHead {
  const { outcome, outcome_reason: reason, outcome_complete: complete, status } = row;
  const stop = stopOf(row);
  return {
    id: row.id,
    tenant: row.tenant,
    agent: row.agent,
    priority: row.priority,
    status,
    epoch: row.epoch,
    attempts: row.attempts,
    deaths: row.deaths,
    createdAt: row.created_at,
    commands: commandsOf(commands),
    commandsSent: row.commands_sent,
    orderNumber: row.order_number,
    position: row.position,
    journalBytes: row.journal_bytes,
    ...present({
      conversation: row.conversation,
      title: row.title,
      key: row.key,
      nonce: row.nonce,
      superseded: row.superseded,
      steered: row.steered,
      notBefore: row.not_before,
      deadline: row.deadline,
      stage: row.stage,
      stageAt: row.stage_at,
      policy: row.policy,
      worker: row.worker,
      startedAt: row.started_at,
      endedAt: row.ended_at,
      watchedUntil: row.watched_until,
    }),
    ...(stop !== undefined && { stop }),
    ...(row.activity !== null && {
      activity: toActivity(row.activity, { epoch: row.epoch, endedAt: row.ended_at ?? undefined }),
    }),
    // Spread what the work returned unchanged: a null in it belongs to it.
    ...(outcome !== null && { outcome: { ...outcome, status: status as 'success', ...present({ reason, complete }) } }),
  };
}

export function recordOf({ inputs, context, ...head }: ShownRecord): TaskRecord {
  return { ...headOf(head), inputs, ...toContext(context) };
}

export function loadOf({ context, ...load }: ShownLoad): TaskLoad {
  return { ...load, ...toContext(context) };
}

export function takenOf(taken: ShownTaken, now: number): TakenTask {
  const { row, commands, load } = taken;
  const claim: ClaimRef = { id: row.id, epoch: row.epoch, session: row.session!, claim: row.claim! };
  return {
    claim,
    task: headOf(taken),
    orders: ordersOfRow({ row, commands }, now),
    ...(load !== null && { load: loadOf(load) }),
  };
}

export function ordersOfRow({ row, commands }: ShownHead, now: number): Orders {
  const watched = now < (row.watched_until ?? 0);
  return ordersOf({ now, orderNumber: row.order_number, stop: stopOf(row) ?? null, commands, watched });
}

export function ordersOf({ now, orderNumber, stop, commands, watched }: ShownOrders): Orders {
  return { now, orderNumber, ...(stop !== null && { stop }), commands: commandsOf(commands), watched };
}

function stopOf(row: TaskRow): StopOrder | undefined {
  if (row.stop_level === null) return undefined;
  return {
    level: row.stop_level,
    reason: row.stop_reason!,
    abortAt: row.stop_abort_at!,
    killAt: row.stop_kill_at!,
    undo: row.stop_undo!,
  };
}

/** Leaves out what is null. */
export function present<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], null> } {
  const kept: Record<string, unknown> = {};
  for (const [name, one] of Object.entries(value)) if (one !== null) kept[name] = one;
  return kept as { [K in keyof T]?: Exclude<T[K], null> };
}

function commandsOf(commands: ShownCommands | null): readonly NumberedCommand[] {
  return commands?.map(([number, command]) => ({ ...command, number })) ?? [];
}
