import type { TaskRecord } from '@whoa/tasks';
import { findQuestionTask } from '@whoa/tasks/internal';
import { UsageError } from '../command.ts';
import type { ConnectionContext } from '../system.ts';
import { commandName } from '../terminal/command-name.ts';
import { listTasks, type TaskSource } from './source/task-source.ts';

const MAX_LISTED = 1_000;
const MAX_SHOWN = 3;

/** Finds a task by its id or the beginning of it. */
export async function findTask(
  source: Pick<TaskSource, 'get' | 'list' | 'questions'>,
  given: string | undefined,
  { env }: ConnectionContext,
): Promise<TaskRecord> {
  const where = `'${commandName(env)} tasks' lists them`;
  if (!given) throw new UsageError(`missing task id; ${where}`);
  const exact = await source.get(given);
  if (exact !== undefined) return exact;
  const { tasks } = await listTasks(source, { limit: MAX_LISTED });
  // A task that waits for an answer may be much older than those.
  const { questions } = await source.questions();
  const ids = new Set([...tasks.map(({ id }) => id), ...questions.map(({ id }) => findQuestionTask(id)!)]);
  const found = [...ids].filter((id) => id.startsWith(given));
  const task = found.length === 1 ? await source.get(found[0]!) : undefined;
  if (task !== undefined) return task;
  if (found.length <= 1)
    throw new UsageError(`there is no task '${given}'; ${where}, with --all-tenants those of every tenant`);
  const some = found.slice(0, MAX_SHOWN).join(', ');
  throw new UsageError(`'${given}' matches ${found.length} tasks, such as ${some}; use more of the id`);
}
