import type { Bus } from '../bus/bus.ts';

/** The fields of a task in a cancellation store. `cancel` and `ended` are written once; `status` may change. */
export type Field = 'status' | 'cancel' | 'ended';
export type Entry = { readonly [Name in Field]?: string };

/** Where the entries of a cancellation store are. */
export interface Entries {
  /** Writes a field in one atomic step, and returns all fields. */
  write(taskId: string, field: Field, value: string): Promise<Entry> | Entry;
  read(taskId: string): Promise<Entry | undefined> | Entry | undefined;
  /** Opens the bus of all processes that share the entries. They have one inbox, which receives every cancel. */
  openBus?(): Bus;
  close(): Promise<void> | void;
}

/** How long an entry is kept after its last write. */
export const KEPT_MS: number = 7 * 86_400_000;
/** How long a server may take to answer. */
export const TIMEOUT_MS = 1_000;
