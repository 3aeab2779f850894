import type { CancelReason, StopMode } from '@whoa/core';
import type { Clock } from '@whoa/core/embed';
import { OVERDUE } from '../rules/rules.ts';
import type { StopOrder } from '../task.ts';

/** Converts a stop order to a ladder from now on. The clocks may differ, but time distances do not. */
export function ladderOf({ level, abortAt, killAt }: StopOrder, now: number): StopMode {
  const drainMs = Math.max(0, abortAt - now);
  const abortMs = Math.max(0, killAt - Math.max(abortAt, now));
  if (level === 'kill' || now >= killAt) return 'kill';
  return level === 'abort' || drainMs === 0 ? { abortMs } : { drainMs, abortMs };
}

/** Compares stop orders without the reason: a task has only one. */
export function isSameStop(a: StopOrder, b: StopOrder): boolean {
  return a.level === b.level && a.abortAt === b.abortAt && a.killAt === b.killAt && a.undo === b.undo;
}

interface DeadlineOptions {
  readonly clock: Clock;
  /** How far the store's clock is ahead of the local clock, in ms. */
  readonly aheadMs: number;
  readonly onDue: (reason: Partial<CancelReason>) => void;
}

/** Calls `onDue` at a deadline of the store's clock. If it has passed, calls it before returning. */
export function setDeadline(deadline: number | undefined, { clock, aheadMs, onDue }: DeadlineOptions): Disposable {
  const due = (): void => onDue(OVERDUE);
  const leftMs = (deadline ?? Infinity) - (clock.now() + aheadMs);
  if (leftMs > 0) return clock.setTimer(leftMs, due, { keepAlive: false });
  due();
  return { [Symbol.dispose]: () => {} };
}
