import { flag, type Rules, readSettings } from '../settings.ts';
import { type StopLevel, type StopMode, stopMode } from './level.ts';
import type { CancelReason } from './reason.ts';

/** How a cancel is carried out. */
export interface CancelOptions {
  /** How hard to stop. Defaults to `graceful`; for a run to its agent's `ladder`, and for one call to `now`. */
  readonly mode?: StopMode | undefined;
  /** Also undo the completed calls that can be undone. */
  readonly undo?: boolean | undefined;
}

/** Cancel options without gaps. */
export interface WholeCancelOptions {
  readonly mode: StopMode;
  readonly undo: boolean;
}

const CANCEL_RULES: Rules<CancelOptions> = { mode: stopMode, undo: flag };

/**
 * Reads the options of a cancel. `usual` is the default mode.
 *
 * @returns All options.
 * @throws {@link SettingsError} when one is unknown or not valid.
 */
export function readCancelOptions(given: CancelOptions, usual: StopMode): WholeCancelOptions {
  return { mode: usual, undo: false, ...readSettings<Partial<WholeCancelOptions>>(given, CANCEL_RULES) };
}

/**
 * What a cancel did.
 *
 * - `accepted`: this cancel is the first; its reason is kept.
 * - `escalated`: already being cancelled; this one made it harder, sooner, or added undo.
 * - `unchanged`: already being cancelled, at least this hard; nothing changed.
 * - `too-late`: the work had ended; nothing changed.
 */
export type CancelReceipt =
  | {
      readonly result: 'accepted' | 'escalated' | 'unchanged';
      readonly level: StopLevel;
      /** The winning reason: the first one, which may not be yours. */
      readonly reason: CancelReason;
      /** When the last level is due: what has not ended by then is abandoned. */
      readonly killAt: number;
    }
  | { readonly result: 'too-late' };
