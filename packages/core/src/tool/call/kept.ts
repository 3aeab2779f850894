import type { CallResult, Json } from '../result.ts';
import type { NestedRun } from './nested.ts';

/**
 * What an undo needs from a call beyond its record: the record is limited in size, and its ids may recur in another
 * run.
 */
export interface KeptCall {
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

export function keepCall(result: CallResult, kept: KeptCall): void {
  keptCalls.set(result, kept);
}

export function keptCallOf(result: CallResult): KeptCall | undefined {
  return keptCalls.get(result);
}
