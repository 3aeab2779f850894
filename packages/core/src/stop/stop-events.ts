import type { StopLevel } from './token/level.ts';
import type { CancelReason } from './token/reason.ts';
import type { CancelReceipt } from './token/receipt.ts';
import type { CancellationToken } from './token/token.ts';

/** The events of a cancel. */
export type StopEvent =
  /** A stop was requested, and what that did. */
  | {
      readonly type: 'cancel-requested';
      readonly receipt: CancelReceipt['result'];
      /** The reason given by this request; the winning one is in `level-changed`. */
      readonly reason: CancelReason;
    }
  | { readonly type: 'level-changed'; readonly level: StopLevel; readonly reason: CancelReason };

/** Reports a token's cancel once, then each level it reaches, in rising order, even when a listener cancels harder. */
export function emitStopEvents(token: CancellationToken, emit: (event: StopEvent) => void): Disposable {
  const reached: { level: StopLevel; reason: CancelReason }[] = [];
  let isFirst = true;
  let isNotifying = false;
  return token.onCancel((level, reason) => {
    reached.push({ level, reason });
    if (isNotifying) return;
    isNotifying = true;
    if (isFirst) {
      isFirst = false;
      emit({ type: 'cancel-requested', receipt: 'accepted', reason });
    }
    for (let next = reached.shift(); next !== undefined; next = reached.shift())
      emit({ type: 'level-changed', ...next });
    isNotifying = false;
  });
}
