import { anything, type Rules, readSettings } from '../settings.ts';
import { type StopLevel, type StopMode, stopMode } from './level.ts';
import type { CancelReason } from './reason.ts';

/** How a cancel is carried out. */
export interface CancelOptions {
  /** The ladder; `graceful` unless said otherwise. */
  readonly mode?: StopMode;
  /** Also undo the completed calls that can be undone. */
  readonly undo?: boolean;
}

const CANCEL_RULES: Rules<CancelOptions> = { mode: stopMode, undo: anything };

/** The options of a cancel; `usual` is how to stop where they do not say. */
export function readCancelOptions(given: CancelOptions, usual: StopMode): Required<CancelOptions> {
  const { mode = usual, undo } = readSettings<CancelOptions>(given, CANCEL_RULES, { allowUnknown: true });
  return { mode, undo: undo === true };
}

/**
 * What a cancel did, truthfully.
 *
 * - `accepted`: this cancel is the one; its reason is kept.
 * - `escalated`: already being cancelled; this one made it harder, sooner, or asked for undo as well.
 * - `already`: already being cancelled, at least this hard; nothing changed.
 * - `too-late`: the work had ended; nothing changed.
 */
export type CancelReceipt =
  | {
      readonly answer: 'accepted' | 'escalated' | 'already';
      readonly level: StopLevel;
      /** The winning reason: the first one, not necessarily yours. */
      readonly reason: CancelReason;
      /** When the last level is due: what has not ended by then is abandoned. */
      readonly killAt: number;
    }
  | { readonly answer: 'too-late' };
