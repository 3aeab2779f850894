import type { RequeueReceipt } from '@whoa/tasks';
import { type Command, EXIT, readArguments, UsageError, type Use } from '../../command.ts';
import type { System } from '../../system.ts';
import { findTask } from '../../tasks/find-task.ts';
import { shortId } from '../../tasks/local-tasks.ts';
import { openTaskSource, SOURCE_HELP, SOURCE_OPTIONS } from '../../tasks/source/open-task-source.ts';
import { listTasks, type TaskSource } from '../../tasks/source/task-source.ts';
import { Screen } from '../../terminal/screen.ts';

const help = `whoa requeue TASK... [options]
whoa requeue --failed [options]

Creates a new task with the same input for each failed or cancelled task; the old tasks do not change. A task can be requeued again
only after its new task has failed too. TASK is an id or the beginning of one.

  --failed        every failed task
  --poison        only tasks whose workers keep crashing
  --dry-run       list the tasks and requeue nothing
${SOURCE_HELP}
  --json          print one JSON object per line

Exit code: 0 if all were requeued, 1 if one could not be.`;

const OPTIONS = {
  failed: { type: 'boolean', default: false },
  poison: { type: 'boolean', default: false },
  'dry-run': { type: 'boolean', default: false },
  ...SOURCE_OPTIONS,
} as const;
const MAX_ALL = 100_000;

export const command: Command = { help, options: OPTIONS, completes: 'tasks', run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values, positionals } = readArguments(args, OPTIONS, Infinity);
  const isMany = values.failed || values.poison;
  if (isMany && positionals.length > 0) throw new UsageError('expected task ids or --failed, not both');
  if (!isMany && positionals.length === 0) throw new UsageError('expected a task, or --failed');
  const source = own(await openTaskSource(values, system));
  const screen = own(new Screen(system, values));
  const findId = async (given: string): Promise<string> => (await findTask(source, given, system)).id;
  const ids = isMany ? await findFailed(source, values.poison) : await Promise.all(positionals.map(findId));
  if (values['dry-run']) {
    for (const id of ids) {
      screen.data({ type: 'would-requeue', id });
      screen.line(id);
    }
    if (!values.json) screen.note(`${ids.length} tasks would be requeued`);
    return EXIT.success;
  }
  let failures = 0;
  for (const id of ids) {
    const receipt = await source.requeue(id);
    if (!('task' in receipt)) failures++;
    screen.data({ type: 'receipt', id, ...receipt });
    screen.line(describe(id, receipt));
  }
  if (!values.json && ids.length === 0) screen.note('No such tasks.');
  return failures === 0 ? EXIT.success : EXIT.failed;
}

function describe(id: string, receipt: RequeueReceipt): string {
  switch (receipt.result) {
    case 'requeued':
      return `${shortId(id)} → ${receipt.task.id}`;
    case 'unchanged':
      return `${shortId(id)} → ${receipt.task.id} (it was requeued before)`;
    case 'not-failed':
      return `${shortId(id)} is not requeued: it is ${receipt.status}`;
    case 'merged-inputs':
      return `${shortId(id)} is not requeued: several messages were gathered into it; send them again yourself`;
    case 'full':
      return `${shortId(id)} is not requeued: too many tasks wait; try again later`;
    case 'not-found':
      return `${shortId(id)} has been removed from the store`;
  }
}

async function findFailed(source: TaskSource, isPoison: boolean): Promise<readonly string[]> {
  const { tasks } = await listTasks(source, { status: 'failed', limit: MAX_ALL, poison: isPoison });
  // Oldest first: they have waited longest.
  return tasks.map(({ id }) => id).toReversed();
}
