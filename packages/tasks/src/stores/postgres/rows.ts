import type { CancelReason, Json } from '@whoa/core';
import type { Orders } from '../../store.ts';
import type { Command, ConversationRecord, NumberedCommand, StopOrder, TaskOutcome, TaskRecord } from '../../task.ts';

/** A task as `task_of` shows it: with nulls, and its outcome in three parts. */
export type ShownTask = Nullable<Omit<TaskRecord, 'commands' | 'outcome' | keyof Present>> &
  Present & {
    readonly commands: ShownCommands;
    readonly outcome: Omit<TaskOutcome, 'status'> | null;
    readonly reason: CancelReason | null;
    readonly complete: boolean | null;
  };

type Present = Pick<TaskRecord, 'id' | 'tenant' | 'status'>;
type ShownCommands = readonly (readonly [number: number, command: Command])[];
type Nullable<T> = { readonly [K in keyof T]: T[K] | null };

export interface ShownOrders {
  readonly now: number;
  readonly leaseUntil: number;
  readonly stop: StopOrder | null;
  readonly commands: ShownCommands;
  readonly watched: boolean;
}

export interface ConversationRow {
  readonly tenant: string;
  readonly conversation: string;
  readonly current: string | null;
  readonly waiting: readonly string[];
  readonly gathering: string | null;
  readonly history: readonly Json[];
  readonly changed_at: number;
}

export function taskOf({ commands, outcome, reason, complete, ...rest }: ShownTask): TaskRecord {
  const { status } = rest;
  // Spread what people said as it is: a null in it is theirs.
  const ended = outcome && { outcome: { ...outcome, status, ...withoutNulls({ reason, complete }) } };
  return { ...withoutNulls(rest), commands: commandsOf(commands), ...ended } as TaskRecord;
}

export function ordersOf({ commands, stop, ...rest }: ShownOrders): Orders {
  return { ...rest, ...(stop && { stop }), commands: commandsOf(commands) };
}

export function conversationOf({ current, gathering, changed_at, ...rest }: ConversationRow): ConversationRecord {
  return {
    ...rest,
    ...(current !== null && { current }),
    ...(gathering !== null && { gathering }),
    changedAt: changed_at,
  };
}

/** Leaves out what is null at the top. */
export function withoutNulls<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], null> } {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null)) as {
    [K in keyof T]: Exclude<T[K], null>;
  };
}

function commandsOf(commands: ShownCommands): readonly NumberedCommand[] {
  return commands.map(([number, command]) => ({ ...command, number }));
}
