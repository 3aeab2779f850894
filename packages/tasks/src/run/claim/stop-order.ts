import type { StopMode } from '@whoa/core';
import type { StopOrder } from '../../task.ts';

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
