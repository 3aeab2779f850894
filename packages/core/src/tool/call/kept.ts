import type { CallResult, Json } from '../result.ts';
import type { NestedRun } from './nested.ts';

/** What an undo needs from a call beyond its record, which is limited in size. */
export interface KeptCall {
  /** Counts the calls of this process in the order in which they ended. */
  readonly order: number;
  readonly input: unknown;
  /** The exclusive keys it held; its undo needs them again. */
  readonly keys: readonly string[];
  /** Whole, however large. */
  readonly details: Json | undefined;
  /** The nested run of the call, if it had one. */
  readonly nested: NestedRun | undefined;
}

// Kept beside the record, and for as long: the record itself is plain data.
const keptCalls = new WeakMap<CallResult, KeptCall>();

let ended = 0;

export function keepCall(result: CallResult, kept: Omit<KeptCall, 'order'>): void {
  keptCalls.set(result, { ...kept, order: ++ended });
}

export function keptCallOf(result: CallResult): KeptCall | undefined {
  return keptCalls.get(result);
}
