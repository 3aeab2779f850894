import { toText } from '@whoa/core';
import type { PauseTarget, TaskRecord, TaskSummary } from '@whoa/tasks';
import { mapInBatches } from '@whoa/tasks/internal';
import { type Command, EXIT, readArguments, readCount, UsageError, type Use, type Values } from '../../command.ts';
import type { System } from '../../system.ts';
import { isLost, LOCAL_TENANT, shortId } from '../../tasks/local-tasks.ts';
import { explainPause, findPause } from '../../tasks/pauses.ts';
import { readFleet, STATUSES, showCounts, showWorkers } from '../../tasks/show-overview.ts';
import { openTaskSource, SOURCE_OPTIONS } from '../../tasks/source/open-task-source.ts';
import { listTasks } from '../../tasks/source/task-source.ts';
import { commandName } from '../../terminal/command-name.ts';
import { describeProviderWait } from '../../terminal/run/event-line.ts';
import { countTokens } from '../../terminal/run/print-end.ts';
import { Screen } from '../../terminal/screen.ts';
import { formatDuration } from '../../terminal/text/durations.ts';
import { oneLine } from '../../terminal/text/plain-text.ts';
import { formatTable } from '../../terminal/text/table.ts';

const help = `whoa tasks [options]

Lists the tasks of this machine, or of the store in your configuration, newest first: running tasks and those that ended in the
last week.

  --status STATUS       only init, running, cancelling, success, failed or cancelled
  --conversation NAME   only tasks of this conversation
  --limit N             how many tasks; defaults to 20
  --tenant NAME         tasks of this tenant; defaults to 'local', the tenant of 'whoa run' and 'whoa acp'
  --all-tenants         tasks of every tenant
  --poison              only failed tasks whose workers keep crashing
  --stats               only counts: tasks by tenant and status; ready and running tasks by agent, and how long they have waited
  --workers             only workers: for all tenants, with the tasks they run and the agents they serve
  --server URL          use this 'whoa serve' instead of the store, with the token in WHOA_TOKEN
  --config FILE         the configuration file, which may specify another store
  --json                print one JSON object per line

A task is 'asking' while it waits for an answer, 'waiting' while it waits for the provider of its model, 'paused' until 'whoa resume',
and 'lost' if the process that ran it crashed; 'whoa cancel' settles a lost task.`;

const OPTIONS = {
  status: { type: 'string', values: STATUSES },
  conversation: { type: 'string' },
  limit: { type: 'string', default: '20' },
  poison: { type: 'boolean', default: false },
  stats: { type: 'boolean', default: false },
  workers: { type: 'boolean', default: false },
  ...SOURCE_OPTIONS,
} as const;
const HEADINGS = ['TASK', 'STATUS', 'AGENT', 'AGE', 'TOOK', 'TURNS', 'CALLS', 'TOKENS', 'TITLE'];
/** The columns to drop first on a narrow terminal: the agent, the counts, the duration, the age. */
const DROP_ORDER = [2, 7, 6, 5, 4, 3];
const MAX_LIMIT = 10_000;
/** The width of a table that is not for a terminal. */
const DEFAULT_WIDTH = 120;
const MAX_TITLE_CHARACTERS = 200;

type SourceValues = Values<typeof SOURCE_OPTIONS>;

/** A task with a title needs no inputs to be shown. */
type Listed = TaskSummary & Partial<Pick<TaskRecord, 'inputs'>>;

export const command: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values } = readArguments(args, OPTIONS);
  const limit = readCount('--limit', values.limit, { max: MAX_LIMIT });
  const { status, conversation, poison } = values;
  const source = own(await openTaskSource(values, system));
  const { stdout, stderr, env } = system;
  const onGone = ({ code }: NodeJS.ErrnoException): never => system.exit(code === 'EPIPE' ? EXIT.success : EXIT.failed);
  const screen = own(new Screen({ stdout, stderr, onGone }, values));
  const width = stdout.columns ?? DEFAULT_WIDTH;
  if (!values.json) screen.status(() => 'asking the store');
  if (values.stats || values.workers) {
    if (values.stats && values.workers) throw new UsageError('--stats and --workers cannot be combined');
    return (values.stats ? showCounts : showWorkers)(source, screen, width);
  }
  await source.reclaimLost();
  const filter = { limit, poison, ...(status && { status }), ...(conversation !== undefined && { conversation }) };
  const { tasks: heads, hasMore } = await listTasks(source, filter);
  // A list has no inputs.
  const read = async (head: TaskSummary): Promise<Listed | undefined> =>
    values.json || head.title === undefined ? source.get(head.id) : head;
  const tasks = (await mapInBatches(heads, read)).filter((task) => task !== undefined);
  const { paused } = await readFleet(source);
  screen.status(undefined);
  if (values.json) for (const task of tasks) screen.data({ ...task, lost: isLost(task) });
  else if (tasks.length === 0)
    screen.note(values['all-tenants'] ? 'No tasks.' : nothing(values.tenant, commandName(env)));
  else for (const line of table(tasks, { width, isOfAll: values['all-tenants'], paused })) screen.line(line);
  if (!values.json && hasMore) screen.note(screen.style('dim', '… and older tasks; use --limit to show more'));
  if (!values.json) for (const line of describePauses(paused, values, env)) screen.note(line);
  return EXIT.success;
}

/** The pauses that keep listed tasks from starting: those of agents, and of the tenants that were asked for. */
function describePauses(
  paused: readonly PauseTarget[],
  { tenant = LOCAL_TENANT, 'all-tenants': isOfAll, ...from }: SourceValues,
  env: NodeJS.ProcessEnv,
): string[] {
  const shown = paused.filter((target) => isOfAll || !('tenant' in target) || target.tenant === tenant);
  return shown.map((target) => explainPause(target, env, from));
}

function nothing(tenant: string | undefined, whoa: string): string {
  return `No tasks of tenant '${tenant ?? LOCAL_TENANT}'. '${whoa} run' creates tasks of 'local'; use --tenant for others.`;
}

interface TableOptions {
  readonly width: number;
  readonly isOfAll: boolean;
  readonly paused: readonly PauseTarget[];
}

function table(tasks: readonly Listed[], { width, isOfAll, paused }: TableOptions): string[] {
  const plain = tasks.map((task) => toRow(task, paused));
  if (!isOfAll) return formatTable(HEADINGS, plain, { width, dropOrder: DROP_ORDER });
  const rows = plain.map((row, index) => [oneLine(tasks[index]!.tenant, 20), ...row]);
  return formatTable(['TENANT', ...HEADINGS], rows, { width, dropOrder: DROP_ORDER.map((column) => column + 1) });
}

function toRow(task: Listed, paused: readonly PauseTarget[]): string[] {
  const now = Date.now();
  const { id, agent, createdAt, startedAt, endedAt, activity, waiting = 0, inputs = [] } = task;
  const isSteered = task.outcome?.reason?.kind === 'steered';
  const wait = describeProviderWait(task);
  const isPaused = task.status === 'init' && findPause(paused, task) !== undefined;
  const status = waiting > 0 ? 'asking' : isSteered ? 'steered' : isPaused ? 'paused' : wait ? 'waiting' : task.status;
  const title = task.title ?? inputs.map(toReplyText).join(' ⏎ ');
  const took = startedAt === undefined ? '' : formatDuration((endedAt ?? now) - startedAt);
  return [
    shortId(id),
    isLost(task) ? 'lost' : status,
    oneLine(agent, 20),
    formatDuration(now - createdAt),
    took,
    `${activity?.turns ?? ''}`,
    `${activity?.calls ?? ''}`,
    countTokens(task.outcome?.usage),
    oneLine(wait === undefined ? title : `${title} · ${wait}`, MAX_TITLE_CHARACTERS),
  ];
}

function toReplyText(input: TaskRecord['inputs'][number]): string {
  if (typeof input === 'string') return input;
  const { content } = (input ?? {}) as { readonly content?: Parameters<typeof toText>[0] };
  return content === undefined ? JSON.stringify(input) : toText(content);
}
