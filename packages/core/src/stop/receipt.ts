import type { StopLevel } from './level.ts';
import type { CancelReason } from './reason.ts';

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
