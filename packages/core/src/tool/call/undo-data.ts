import type { CallResult, Json } from '../result.ts';
import type { NestedRun } from './nested.ts';

/** What an undo needs from a call beyond its record, which is limited in size. */
export interface UndoData {
  /** Counts the calls of this process in the order in which they ended. */
  readonly order: number;
  readonly input: unknown;
  readonly effectKey: string;
  /** The exclusive keys it held; its undo needs them again. */
  readonly keys: readonly string[];
  /** Whole, however large. */
  readonly details: Json | undefined;
  /** The nested run of the call, if it had one. */
  readonly nested: NestedRun | undefined;
}

// Kept next to the record, and for as long: the record itself is plain data.
const undoDataByResult = new WeakMap<CallResult, UndoData>();

let ended = 0;

export function saveUndoData(result: CallResult, kept: Omit<UndoData, 'order'>): void {
  undoDataByResult.set(result, { ...kept, order: ++ended });
}

export function findUndoData(result: CallResult): UndoData | undefined {
  return undoDataByResult.get(result);
}
