import type { CancelReason, Json } from '@whoa/core';
import type { Orders, TakenTask, TaskLoad } from '../../delivery.ts';
import { toActivity } from '../../rules/activity.ts';
import { toContext } from '../../rules/new-task.ts';
import type { NumberedCommand, StopOrder, TaskCommand, TaskHead, TaskOutcome, TaskRecord } from '../../task.ts';

type ShownCommands = readonly (readonly [number: number, command: TaskCommand])[];

/** The fields of a head that have a column each. */
type Field = Exclude<keyof TaskHead, 'commands' | 'stop' | 'activity' | 'outcome'>;
const FIELDS = `id tenant agent conversation title key nonce superseded steered priority notBefore deadline status stage
  stageAt policy epoch attempts deaths worker createdAt startedAt endedAt commandsSent orderNumber position journalBytes
  watchedUntil`.split(/\s+/) as readonly Field[];
const COLUMNS = new Map(FIELDS.map((field) => [field, field.replaceAll(/[A-Z]/g, (x) => `_${x.toLowerCase()}`)]));

/** A row of `tasks` as `row_to_json` shows it. */
type TaskRow = Readonly<Record<string, unknown>> &
  Pick<TaskHead, 'id' | 'epoch'> & {
    readonly session: string;
    readonly claim: string;
    readonly activity: string | null;
    readonly outcome: Omit<TaskOutcome, 'status'> | null;
    readonly outcome_reason: CancelReason | null;
    readonly outcome_complete: boolean | null;
  };

export interface ShownHead {
  readonly row: TaskRow;
  readonly stop: StopOrder | null;
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

export function headOf({ row, commands, stop }: ShownHead): TaskHead {
  const { outcome, outcome_reason: reason, outcome_complete: complete, activity } = row;
  const fields = Object.fromEntries([...COLUMNS].map(([field, column]) => [field, row[column]]));
  const head = present(fields) as unknown as Pick<TaskHead, Field>;
  return {
    ...head,
    commands: commandsOf(commands),
    ...present({ stop }),
    ...(activity !== null && { activity: toActivity(activity, head) }),
    // Spread what the work returned unchanged: a null in it belongs to it.
    ...(outcome !== null && {
      outcome: { ...outcome, status: head.status as 'success', ...present({ reason, complete }) },
    }),
  };
}

export function recordOf({ inputs, context, ...head }: ShownRecord): TaskRecord {
  return { ...headOf(head), inputs, ...toContext(context) };
}

export function loadOf({ context, ...load }: ShownLoad): TaskLoad {
  return { ...load, ...toContext(context) };
}

export function takenOf(taken: ShownTaken, now: number): TakenTask {
  const { id, epoch, session, claim } = taken.row;
  return {
    claim: { id, epoch, session, claim },
    task: headOf(taken),
    orders: ordersOfHead(taken, now),
    ...(taken.load !== null && { load: loadOf(taken.load) }),
  };
}

export function ordersOfHead(shown: ShownHead, now: number): Orders {
  const { commands, stop, orderNumber, watchedUntil = 0 } = headOf(shown);
  return { now, orderNumber, ...(stop !== undefined && { stop }), commands, watched: now < watchedUntil };
}

export function ordersOf({ now, orderNumber, stop, commands, watched }: ShownOrders): Orders {
  return { now, orderNumber, ...(stop !== null && { stop }), commands: commandsOf(commands), watched };
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
