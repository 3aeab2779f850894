import type { Orders, TaskLoad } from '../../delivery/worker-store.ts';
import { toContext } from '../rules/new-task.ts';
import { questionsFor } from './questions.ts';
import type { OperationContext, StoredTask } from './tables.ts';

/** Returns what a task's work needs in addition to its head. */
export function toLoad(
  { inputOwner, tenant, conversation, context }: StoredTask,
  tables: OperationContext['tables'],
): TaskLoad {
  const history = conversation === undefined ? [] : tables.history({ tenant, conversation });
  return { inputs: tables.inputs(inputOwner), history, ...toContext(context) };
}

/** Returns the complete orders for the worker of a task. */
export function ordersFor(task: StoredTask, { tables, now }: Pick<OperationContext, 'tables' | 'now'>): Orders {
  const { stop, commands, orderNumber } = task;
  const questions = questionsFor(task, tables);
  const asked = questions.length > 0 && { questions };
  return { now, orderNumber, ...(stop !== undefined && { stop }), commands, readers: tables.readers(task), ...asked };
}
