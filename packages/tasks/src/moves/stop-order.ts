import { type CancelReason, rankOf, type StopHow, type StopLevel, scheduleOf } from '@whoa/core';
import { move } from '../status.ts';
import type { StopOrder, TaskRecord } from '../task.ts';
import { hintOf, type Tables } from './tables.ts';

interface StopAsked {
  readonly tables: Tables;
  readonly now: number;
  readonly how: StopHow;
  readonly undo: boolean;
}

/** Orders the worker of a task to stop. Levels only rise, deadlines only come closer, the first reason stays. */
export function orderStop(
  task: TaskRecord,
  reason: CancelReason,
  { tables, now, how, undo }: StopAsked,
): { answer: 'accepted' | 'escalated' | 'already'; stop: StopOrder } {
  const asked = { ...scheduleOf(how, now), undo };
  const before = task.stop;
  if (before !== undefined && !isStronger(asked, before, now)) return { answer: 'already', stop: before };
  const stop: StopOrder = {
    reason: before?.reason ?? reason,
    level: higher(asked.level, before && levelAt(before, now)),
    abortAt: Math.min(asked.abortAt, before?.abortAt ?? Infinity),
    killAt: Math.min(asked.killAt, before?.killAt ?? Infinity),
    undo: undo || (before?.undo ?? false),
  };
  const stopping = { ...task, status: move(task.status, 'cancel').status, stop };
  tables.saveTask(stopping);
  tables.tell(hintOf('cancel', stopping));
  return { answer: before === undefined ? 'accepted' : 'escalated', stop };
}

/** How hard a stop is by now: it climbs by itself as its deadlines pass. */
export function levelAt(stop: StopOrder, now: number): StopLevel {
  const climbed = now >= stop.killAt ? 'kill' : now >= stop.abortAt ? 'abort' : stop.level;
  return higher(climbed, stop.level);
}

function isStronger(asked: Omit<StopOrder, 'reason'>, before: StopOrder, now: number): boolean {
  return (
    rankOf(asked.level) > rankOf(levelAt(before, now)) ||
    asked.abortAt < before.abortAt ||
    asked.killAt < before.killAt ||
    (asked.undo && !before.undo)
  );
}

function higher(a: StopLevel, b: StopLevel | undefined): StopLevel {
  return rankOf(a) >= rankOf(b) ? a : b!;
}
