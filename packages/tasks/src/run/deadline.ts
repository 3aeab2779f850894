import type { CancelReason } from '@whoa/core';
import type { Clock } from '@whoa/core/embed';

interface DeadlineOptions {
  readonly clock: Clock;
  /** How far the store's clock is ahead of the local clock, in ms. */
  readonly aheadMs: number;
  readonly onDue: (reason: Partial<CancelReason>) => void;
}

/** Calls `onDue` at a deadline of the store's clock. If it has passed, calls it before returning. */
export function setDeadline(deadline: number | undefined, { clock, aheadMs, onDue }: DeadlineOptions): Disposable {
  const due = (): void => onDue({ kind: 'deadline', message: 'the deadline of the task has passed' });
  const leftMs = (deadline ?? Infinity) - (clock.now() + aheadMs);
  if (leftMs > 0) return clock.setTimer(leftMs, due, { keepAlive: false });
  due();
  return { [Symbol.dispose]: () => {} };
}
