import type { Orders, TaskLoad } from '../delivery.ts';
import { isWatched } from '../task.ts';
import type { KeptTask, Moment } from './tables.ts';

/** What a task's work needs beside its head. */
export function loadOf({ inputsOf, tenant, conversation }: KeptTask, tables: Moment['tables']): TaskLoad {
  const history = conversation === undefined ? [] : tables.history({ tenant, conversation });
  return { inputs: tables.inputs(inputsOf), history };
}

/** Everything the worker of a task should know. */
export function ordersFor(task: KeptTask, now: number): Orders {
  const { stop, commands, orderNumber } = task;
  return { now, orderNumber, ...(stop !== undefined && { stop }), commands, watched: isWatched(task, now) };
}
