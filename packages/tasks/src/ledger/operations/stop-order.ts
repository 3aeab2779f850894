import type { CancelReason, StopLevel } from '@whoa/core';
import { rankLevel } from '@whoa/core/internal';
import type { StopOrder } from '../../task.ts';
import type { StopRequest } from '../driver.ts';
import { nextStatus } from '../rules/status.ts';
import { closeOpen } from './questions.ts';
import { makeSettleable, sendOrder } from './stage.ts';
import type { OperationContext, StoredTask } from './tables.ts';

/** Orders a task to stop. Levels only rise, deadlines only move closer, and the first reason is kept. */
export function orderStop(
  task: StoredTask,
  { level, abortMs, killMs, undo, reason }: StopRequest & { readonly reason: CancelReason },
  context: OperationContext,
): { result: 'accepted' | 'escalated' | 'unchanged'; stop: StopOrder } {
  const { now } = context;
  const asked = { level, abortAt: now + abortMs, killAt: now + killMs, undo };
  const before = task.stop;
  if (before !== undefined && !isStronger(asked, before, now)) return { result: 'unchanged', stop: before };
  const stop: StopOrder = {
    reason: before?.reason ?? reason,
    level: higher(asked.level, before && levelAt(before, now)),
    abortAt: Math.min(asked.abortAt, before?.abortAt ?? Infinity),
    killAt: Math.min(asked.killAt, before?.killAt ?? Infinity),
    undo: undo || (before?.undo ?? false),
  };
  // A task that has started must be settled, not just ended, even if no worker holds it at the moment.
  const { status } = nextStatus(task.status === 'init' ? 'running' : task.status, 'cancel');
  const stopping = { ...closeOpen(task, 'cancelled', context), status, stop };
  if (task.stage === 'held') sendOrder(stopping, 'cancel', context);
  else makeSettleable({ ...stopping, orderNumber: task.orderNumber + 1 }, context);
  return { result: before === undefined ? 'accepted' : 'escalated', stop };
}

/** Returns the current level of a stop, which rises as its deadlines pass. */
export function levelAt(stop: StopOrder, now: number): StopLevel {
  const climbed = now >= stop.killAt ? 'kill' : now >= stop.abortAt ? 'abort' : stop.level;
  return higher(climbed, stop.level);
}

function isStronger(asked: Omit<StopOrder, 'reason'>, before: StopOrder, now: number): boolean {
  return (
    rankLevel(asked.level) > rankLevel(levelAt(before, now)) ||
    asked.abortAt < before.abortAt ||
    asked.killAt < before.killAt ||
    (asked.undo && !before.undo)
  );
}

function higher(a: StopLevel, b: StopLevel | undefined): StopLevel {
  return rankLevel(a) >= rankLevel(b) ? a : b!;
}
