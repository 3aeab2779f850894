import { formatStopReport, type StopMode, type StopReport } from '@whoa/core';
import { LADDERS } from '@whoa/core/embed';
import type { StoreCancelReceipt, TaskRecord, TaskSummary } from '@whoa/tasks';
import { type Command, EXIT, readArguments, UsageError, type Use } from '../../command.ts';
import type { ConnectionContext, System } from '../../system.ts';
import { type CancelContext, cancelCall } from '../../tasks/cancel-call.ts';
import { findTask } from '../../tasks/find-task.ts';
import { isLost, shortId } from '../../tasks/local-tasks.ts';
import { openTaskSource, SOURCE_OPTIONS } from '../../tasks/source/open-task-source.ts';
import { LIVE, listLiveTasks, type TaskSource } from '../../tasks/source/task-source.ts';
import { Screen } from '../../terminal/screen.ts';
import { oneLine } from '../../terminal/text/plain-text.ts';

const help = `whoa cancel TASK... [options]
whoa cancel --all [options]

Stops tasks in any terminal, editor or worker, waits until they have settled and prints the stop report. TASK is an id or the
beginning of one.

  --reason TEXT         why; recorded in the task, its journal and its report
  --mode MODE           graceful: let running calls finish, for 10 s at most; now: interrupt them; kill: do not wait for calls.
                        Defaults to stopMode in your configuration, otherwise graceful
  --undo                undo completed calls whose tools support it
  --call CALL           stop only this call of one task ('whoa watch' shows the ids); the task continues
  --all                 every task that has not ended; or, with these options, those that match:
  --status STATUS         init, running or cancelling
  --agent NAME            tasks for this agent
  --conversation NAME     tasks of this conversation
  --dry-run             list the tasks and stop nothing
  --no-wait             do not wait until the tasks have settled
  --tenant NAME         tasks of this tenant; defaults to 'local', the tenant of 'whoa run' and 'whoa acp'
  --all-tenants         tasks of every tenant
  --server URL          use this 'whoa serve' instead of the store, with the token in WHOA_TOKEN
  --config FILE         the configuration file, which may specify another store
  --json                print one JSON object per line: the receipts, then the settled tasks

Exit code: 0 if all tasks were stopped, 1 if one had already ended or could not be stopped.`;

const OPTIONS = {
  reason: { type: 'string' },
  mode: { type: 'string', values: ['graceful', 'now', 'kill'] },
  undo: { type: 'boolean', default: false },
  call: { type: 'string' },
  all: { type: 'boolean', default: false },
  status: { type: 'string', values: LIVE },
  agent: { type: 'string' },
  conversation: { type: 'string' },
  'dry-run': { type: 'boolean', default: false },
  'no-wait': { type: 'boolean', default: false },
  ...SOURCE_OPTIONS,
} as const;
const MAX_ALL = 100_000;
const AT_ONCE = 16;

export const command: Command = { help, options: OPTIONS, completes: 'tasks', run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values, positionals } = readArguments(args, OPTIONS, Infinity);
  const { call, reason, undo, status, agent, conversation } = values;
  const filter = { status, agent, conversation };
  const hasFilter = Object.values(filter).some((value) => value !== undefined);
  if (call !== undefined && undo) throw new UsageError('--call and --undo cannot be combined');
  if (call !== undefined && (values.all || positionals.length > 1))
    throw new UsageError('--call: expected exactly one task');
  if (values.all && positionals.length > 0) throw new UsageError('expected task ids or --all, not both');
  if (!values.all && hasFilter) throw new UsageError('--status, --agent and --conversation need --all');
  const source = own(await openTaskSource(values, system));
  const screen = own(new Screen(system, values));
  const context: CancelContext = { source, screen, waits: !values['no-wait'] };
  if (!values.json) screen.status(() => 'asking the store');
  const tasks = values.all
    ? await listLiveTasks(source, { ...filter, limit: MAX_ALL })
    : await findAll(source, positionals, system);
  screen.status(undefined);
  if (values['dry-run']) return printDryRun(tasks, context);
  if (call !== undefined) return cancelCall(tasks[0]!.id, { callId: call, reason }, context);
  const mode = values.mode ?? source.stopMode;
  const ends: boolean[] = [];
  const ids = tasks.map(({ id }) => id);
  for (let i = 0; i < ids.length; i += AT_ONCE) {
    const some = ids.slice(i, i + AT_ONCE);
    const receipts = await Promise.all(some.map((id) => source.cancel(id, { reason, mode, undo })));
    for (const [index, receipt] of receipts.entries())
      ends.push(printReceipt(some[index]!, receipt, { ...context, mode }));
  }
  if (values.all && ids.length === 0) screen.line('No tasks to stop.');
  if (context.waits)
    for (const [index, id] of ids.entries()) if (ends[index]) await waitForEnd(id, context, ids.length);
  return ends.every(Boolean) ? EXIT.success : EXIT.failed;
}

/** Find all tasks before stopping the first: if one id is wrong, nothing is stopped. */
async function findAll(
  source: TaskSource,
  given: readonly string[],
  surroundings: ConnectionContext,
): Promise<readonly TaskRecord[]> {
  const names = given.length === 0 ? [undefined] : given;
  const tasks: TaskRecord[] = [];
  for (const name of names) tasks.push(await findTask(source, name, surroundings));
  return tasks.filter(({ id }, index) => tasks.findIndex((task) => task.id === id) === index);
}

function printDryRun(tasks: readonly TaskSummary[], { screen }: CancelContext): number {
  for (const { id, status, agent } of tasks) {
    screen.data({ type: 'would-cancel', id, status, agent });
    screen.line(`${shortId(id)} ${status}, ${oneLine(agent, 40)}: would be stopped`);
  }
  screen.line(`${tasks.length === 1 ? '1 task' : `${tasks.length} tasks`} would be stopped; nothing was.`);
  return EXIT.success;
}

/** Prints the receipt. Returns whether the task is being stopped. */
function printReceipt(
  id: string,
  receipt: StoreCancelReceipt,
  { screen, mode }: CancelContext & { readonly mode: StopMode },
): boolean {
  screen.data({ type: 'receipt', id, ...receipt });
  if (receipt.result === 'not-found' || receipt.result === 'too-late') {
    const why =
      receipt.result === 'not-found' ? 'has been removed from the store' : `had already ended: ${receipt.status}`;
    screen.line(`${shortId(id)} ${why}`);
    return false;
  }
  const wait = receipt.result === 'unchanged' ? '' : describeWait(mode);
  screen.line(`${shortId(id)} ${ANSWERS[receipt.result]}${wait}`);
  return true;
}

const ANSWERS = {
  accepted: 'is being stopped',
  escalated: 'was already being stopped; it is now stopped harder',
  unchanged: 'is already being stopped, at least this hard',
} as const;

/** Describes what happens to running calls, and the time limit. */
function describeWait(mode: StopMode): string {
  const { drainMs, abortMs } = typeof mode === 'string' ? LADDERS[mode] : mode;
  if (drainMs) return `: running calls may finish, for ${drainMs / 1_000} s at most`;
  return abortMs ? `: running calls are interrupted, for ${abortMs / 1_000} s at most` : ': nothing is waited for';
}

async function waitForEnd(id: string, { source, screen }: CancelContext, count: number): Promise<void> {
  if (!screen.asJson) screen.status(() => `waiting until ${shortId(id)} has settled`);
  const task = await source.follow(id, {
    onRecord: async (record) => {
      if (isLost(record)) await source.settleOrphaned(record);
      else await source.reclaimLost();
      return undefined;
    },
  });
  screen.status(undefined);
  screen.data({ type: 'result', ...task });
  if (screen.asJson) return;
  const stop = task.outcome?.stopReport as unknown as StopReport | undefined;
  const report = stop === undefined ? 'It had not started.' : formatStopReport(stop);
  // For several tasks print only the first line of each report. 'whoa watch' shows the rest.
  screen.line(count === 1 ? report : `${shortId(id)} ${task.status}: ${report.split('\n', 1)[0]!}`);
}
