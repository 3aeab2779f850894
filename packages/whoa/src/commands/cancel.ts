import { formatStopReport, LADDERS, type StopMode, type StopReport } from '@whoa/core';
import type { StoreCancelReceipt, TaskHead, TaskRecord, TaskStatus } from '@whoa/tasks';
import { type Command, EXIT, type Own, readArguments, UsageError } from '../command.ts';
import { cancelCall } from '../tasks/cancel-call.ts';
import { findTask } from '../tasks/find-task.ts';
import { isLost, shortId } from '../tasks/local-tasks.ts';
import { openTaskSource } from '../tasks/open-task-source.ts';
import { listTasks, type TaskSource } from '../tasks/task-source.ts';
import { Screen } from '../terminal/screen.ts';
import { oneLine } from '../terminal/text/plain-text.ts';

const help = `whoa cancel TASK... [options]
whoa cancel --all [options]

Stops tasks, whichever terminal, editor or worker they run in, waits until they have settled and prints the stop report. A task is
named by its id or the beginning of it.

  --reason TEXT         why; the task, its journal and its report say so
  --mode MODE           graceful: what runs may finish, 10 s at most; now: it is interrupted; kill: it is not waited for. Unless
                        given, the ladder of your configuration, else graceful
  --undo                take back completed calls that can be taken back
  --call CALL           stop only this call of one task ('whoa watch' shows their ids); the task goes on
  --all                 every task that has not ended, or with these, only those that match:
  --status STATUS         init, running or cancelling
  --agent NAME            tasks for this agent
  --conversation NAME     tasks of this conversation
  --dry-run             only say which tasks it would be
  --no-wait             do not wait for the end
  --tenant NAME         whose tasks; 'local', those of this machine's commands, unless given
  --all-tenants         those of every tenant
  --server URL          ask a 'whoa serve' there, with the token in WHOA_TOKEN, and not the store
  --config FILE         the configuration, which may name another store
  --json                one JSON object a line: the receipts, and the tasks in the end

Exit code: 0 all of them were stopped, 1 one had ended before or could not be stopped.`;

const OPTIONS = {
  reason: { type: 'string' },
  mode: { type: 'string' },
  undo: { type: 'boolean', default: false },
  call: { type: 'string' },
  all: { type: 'boolean', default: false },
  status: { type: 'string' },
  agent: { type: 'string' },
  conversation: { type: 'string' },
  'dry-run': { type: 'boolean', default: false },
  'no-wait': { type: 'boolean', default: false },
  tenant: { type: 'string' },
  'all-tenants': { type: 'boolean', default: false },
  server: { type: 'string' },
  config: { type: 'string' },
} as const;
const MODES = ['graceful', 'now', 'kill'] as const;
/** Those that wait first: none of them begins because another was stopped. */
const LIVE = ['init', 'running', 'cancelling'] as const;
const MAX_ALL = 100_000;
const AT_ONCE = 16;

export const cancelCommand: Command = { help, run };

async function run(args: readonly string[], own: Own): Promise<number> {
  const { values, positionals } = readArguments(args, OPTIONS, Infinity);
  const { call, reason, undo, json: asJson, status, agent, conversation } = values;
  const wanted = oneOf('--mode', MODES, values.mode);
  const filter = { status: oneOf('--status', LIVE, status), agent, conversation };
  const hasFilter = [status, agent, conversation].some((value) => value !== undefined);
  if (call !== undefined && undo) throw new UsageError('--call and --undo do not go together');
  if (call !== undefined && (values.all || positionals.length > 1)) throw new UsageError('--call: name one task');
  if (values.all && positionals.length > 0) throw new UsageError('name tasks or say --all, not both');
  if (!values.all && hasFilter) throw new UsageError('--status, --agent and --conversation go with --all');
  const source = own(await openTaskSource(values));
  const screen = own(new Screen());
  const context: Context = { source, screen, asJson, waits: !values['no-wait'] };
  if (!asJson) screen.status(() => 'asking the store');
  const tasks = values.all ? await findLive(source, filter) : await findAll(source, positionals);
  screen.status(undefined);
  if (values['dry-run']) return tellDryRun(tasks, context);
  if (call !== undefined) return cancelCall(tasks[0]!.id, { callId: call, reason }, context);
  const mode = wanted ?? source.ladder;
  const ends: boolean[] = [];
  const ids = tasks.map(({ id }) => id);
  for (let i = 0; i < ids.length; i += AT_ONCE) {
    const some = ids.slice(i, i + AT_ONCE);
    const receipts = await Promise.all(some.map((id) => source.cancel(id, { reason, mode, undo })));
    for (const [index, receipt] of receipts.entries())
      ends.push(tellReceipt(some[index]!, receipt, { ...context, mode }));
  }
  if (values.all && !asJson && ids.length === 0) screen.line('There is nothing to stop.');
  if (context.waits)
    for (const [index, id] of ids.entries()) if (ends[index]) await waitForEnd(id, context, ids.length);
  return ends.every(Boolean) ? EXIT.success : EXIT.failed;
}

interface Context {
  readonly source: TaskSource;
  readonly screen: Screen;
  readonly asJson: boolean;
  readonly waits: boolean;
}

function oneOf<const Word extends string>(option: string, words: readonly Word[], given: string | undefined) {
  const found = words.find((word) => word === given);
  if (given !== undefined && found === undefined)
    throw new UsageError(`${option}: '${given}' is none of ${words.join(', ')}`);
  return found;
}

/** All of them before the first is stopped: with one name wrong, nothing is. */
async function findAll(source: TaskSource, given: readonly string[]): Promise<readonly TaskRecord[]> {
  const names = given.length === 0 ? [undefined] : given;
  const tasks: TaskRecord[] = [];
  for (const name of names) tasks.push(await findTask(source, name));
  return tasks.filter(({ id }, index) => tasks.findIndex((task) => task.id === id) === index);
}

interface LiveFilter {
  readonly status: TaskStatus | undefined;
  readonly agent: string | undefined;
  readonly conversation: string | undefined;
}

async function findLive(source: TaskSource, { status, agent, conversation }: LiveFilter): Promise<TaskHead[]> {
  const found = new Map<string, TaskHead>();
  for (const one of status === undefined ? LIVE : [status]) {
    const filter = { status: one, limit: MAX_ALL, ...(conversation !== undefined && { conversation }) };
    const { tasks } = await listTasks(source, filter);
    for (const task of tasks) if (agent === undefined || task.agent === agent) found.set(task.id, task);
  }
  return [...found.values()];
}

function tellDryRun(tasks: readonly TaskHead[], { screen, asJson }: Context): number {
  for (const { id, status, agent } of tasks) {
    if (asJson) screen.data({ type: 'would-cancel', id, status, agent });
    else screen.line(`${shortId(id)} ${status}, ${oneLine(agent, 40)}: would be stopped`);
  }
  if (!asJson) screen.line(`${tasks.length === 1 ? '1 task' : `${tasks.length} tasks`} would be stopped; nothing was.`);
  return EXIT.success;
}

/** Returns whether it is being stopped. */
function tellReceipt(
  id: string,
  receipt: StoreCancelReceipt,
  { screen, asJson, mode }: Context & { readonly mode: StopMode },
): boolean {
  if (asJson) screen.data({ type: 'receipt', id, ...receipt });
  if (receipt.answer === 'unknown') {
    if (!asJson) screen.line(`${shortId(id)} is no longer kept`);
    return false;
  }
  if (receipt.answer === 'too-late') {
    if (!asJson) screen.line(`${shortId(id)} had already ended: ${receipt.status}`);
    return false;
  }
  const wait = receipt.answer === 'already' ? '' : describeWait(mode);
  if (!asJson) screen.line(`${shortId(id)} ${ANSWERS[receipt.answer]}${wait}`);
  return true;
}

const ANSWERS = {
  accepted: 'is being stopped',
  escalated: 'was being stopped already; now it is stopped harder',
  already: 'is being stopped already, at least this hard',
} as const;

/** What happens to what runs, and for how long at most. */
function describeWait(mode: StopMode): string {
  const { drainMs, abortMs } = typeof mode === 'string' ? LADDERS[mode] : mode;
  if (drainMs) return `: what runs may finish, ${drainMs / 1_000} s at most`;
  return abortMs ? `: what runs is interrupted, ${abortMs / 1_000} s at most` : ': nothing is waited for';
}

async function waitForEnd(id: string, { source, screen, asJson }: Context, count: number): Promise<void> {
  if (!asJson) screen.status(() => `waiting until ${shortId(id)} has settled`);
  const task = await source.follow(id, {
    onRecord: async (record) => {
      if (isLost(record)) await source.settleLost(record);
      else await source.freeLost();
      return undefined;
    },
  });
  screen.status(undefined);
  if (asJson) {
    screen.data({ type: 'result', ...task });
    return;
  }
  const stop = task.outcome?.stop as unknown as StopReport | undefined;
  const report = stop === undefined ? 'It had not begun.' : formatStopReport(stop);
  // Of many, what each did would be too much to read; 'watch' shows it.
  screen.line(count === 1 ? report : `${shortId(id)} ${task.status}: ${report.split('\n', 1)[0]!}`);
}
