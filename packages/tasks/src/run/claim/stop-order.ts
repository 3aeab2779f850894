import type { StopMode } from '@whoa/core';
import type { StopOrder } from '../../task.ts';

/** A stop order as a ladder from now on; the store's clock and ours may differ, its distances do not. */
export function ladderOf({ level, abortAt, killAt }: StopOrder, now: number): StopMode {
  const drainMs = Math.max(0, abortAt - now);
  const abortMs = Math.max(0, killAt - Math.max(abortAt, now));
  if (level === 'kill' || now >= killAt) return 'kill';
  return level === 'abort' || drainMs === 0 ? { abortMs } : { drainMs, abortMs };
}

/** The reason is left out: a task has only one. */
export function isSameStop(a: StopOrder, b: StopOrder): boolean {
  return a.level === b.level && a.abortAt === b.abortAt && a.killAt === b.killAt && a.undo === b.undo;
}
