import { toText } from '@whoa/core';
import type { TaskHead, TaskRecord } from '@whoa/tasks';
import { type Command, EXIT, type Own, readArguments, readCount, UsageError } from '../command.ts';
import { isLost, LOCAL_TENANT, shortId } from '../tasks/local-tasks.ts';
import { openTaskSource } from '../tasks/open-task-source.ts';
import { STATUSES, showCounts, showWorkers } from '../tasks/show-overview.ts';
import { listTasks, type TaskSource } from '../tasks/task-source.ts';
import { commandName } from '../terminal/command-name.ts';
import { Screen } from '../terminal/screen.ts';
import { inWords } from '../terminal/text/durations.ts';
import { oneLine } from '../terminal/text/plain-text.ts';
import { formatTable } from '../terminal/text/table.ts';

const help = `whoa tasks [options]

Lists the tasks of this machine, or of the store in your configuration, newest first: running tasks and those that ended in the
last week.

  --status STATUS       only init, running, cancelling, success, failed or cancelled
  --conversation NAME   only tasks of this conversation
  --limit N             how many tasks; defaults to 20
  --tenant NAME         tasks of this tenant; defaults to 'local', the tenant of 'whoa run' and 'whoa acp'
  --all-tenants         tasks of every tenant
  --stats               only count the tasks by status
  --workers             only list the workers of all tenants, the tasks they run and the agents they wait for
  --server URL          use this 'whoa serve' instead of the store, with the token in WHOA_TOKEN
  --config FILE         the configuration file, which may name another store
  --json                print one JSON object per line

A task is 'lost' when the process that ran it died; 'whoa cancel' settles it.`;

const OPTIONS = {
  status: { type: 'string' },
  conversation: { type: 'string' },
  limit: { type: 'string', default: '20' },
  tenant: { type: 'string' },
  'all-tenants': { type: 'boolean', default: false },
  stats: { type: 'boolean', default: false },
  workers: { type: 'boolean', default: false },
  server: { type: 'string' },
  config: { type: 'string' },
} as const;
const HEADINGS = ['TASK', 'STATUS', 'AGENT', 'AGE', 'TOOK', 'INPUT'];
/** The columns to drop first on a narrow terminal: the agent, the duration, the age. */
const LESS_WANTED = [2, 4, 3];
const MAX_LIMIT = 10_000;
const READ_AT_ONCE = 16;
const MAX_INPUT_CHARACTERS = 200;

export const tasksCommand: Command = { help, run };

async function run(args: readonly string[], own: Own): Promise<number> {
  const { values } = readArguments(args, OPTIONS);
  const limit = readCount('--limit', values.limit, { max: MAX_LIMIT });
  const status = STATUSES.find((one) => one === values.status);
  if (values.status !== undefined && status === undefined) {
    throw new UsageError(`--status: expected one of ${STATUSES.join(', ')}, got '${values.status}'`);
  }
  const { conversation } = values;
  const source = own(await openTaskSource(values));
  const screen = own(new Screen({ onGone: ({ code }) => process.exit(code === 'EPIPE' ? EXIT.success : EXIT.failed) }));
  if (!values.json) screen.status(() => 'asking the store');
  if (values.stats || values.workers) {
    if (values.stats && values.workers) throw new UsageError('--stats and --workers cannot be combined');
    return values.stats ? showCounts(source, screen, values) : showWorkers(source, screen, values);
  }
  await source.freeLost();
  const filter = { limit, ...(status && { status }), ...(conversation !== undefined && { conversation }) };
  const { tasks: heads, hasMore } = await listTasks(source, filter);
  const tasks = await readTasks(source, heads);
  screen.status(undefined);
  if (values.json) for (const task of tasks) screen.data({ ...task, lost: isLost(task) });
  else if (tasks.length === 0) screen.note(values['all-tenants'] ? 'No tasks.' : nothing(values.tenant));
  else for (const line of table(tasks, { isOfAll: values['all-tenants'] })) screen.line(line);
  if (!values.json && hasMore) screen.note(screen.style('dim', '… and older tasks; use --limit to show more'));
  return EXIT.success;
}

function nothing(tenant: string | undefined): string {
  return `No tasks of tenant '${tenant ?? LOCAL_TENANT}'. '${commandName()} run' creates tasks of 'local'; use --tenant for others.`;
}

/** Reads whole records, because the list has no inputs. Bounded concurrency. */
async function readTasks(source: TaskSource, heads: readonly TaskHead[]): Promise<TaskRecord[]> {
  const tasks: TaskRecord[] = [];
  for (let i = 0; i < heads.length; i += READ_AT_ONCE) {
    const some = heads.slice(i, i + READ_AT_ONCE).map(({ id }) => source.get(id));
    for (const task of await Promise.all(some)) if (task !== undefined) tasks.push(task);
  }
  return tasks;
}

function table(tasks: readonly TaskRecord[], { isOfAll }: { readonly isOfAll: boolean }): string[] {
  const width = process.stdout.columns ?? 120;
  if (!isOfAll) return formatTable(HEADINGS, tasks.map(rowOf), { width, lessWanted: LESS_WANTED });
  const rows = tasks.map((task) => [oneLine(task.tenant, 20), ...rowOf(task)]);
  return formatTable(['TENANT', ...HEADINGS], rows, { width, lessWanted: LESS_WANTED.map((column) => column + 1) });
}

function rowOf(task: TaskRecord): string[] {
  const now = Date.now();
  const { id, status, agent, createdAt, startedAt, endedAt, inputs } = task;
  const took = startedAt === undefined ? '' : inWords((endedAt ?? now) - startedAt);
  return [
    shortId(id),
    isLost(task) ? 'lost' : status,
    oneLine(agent, 20),
    inWords(now - createdAt),
    took,
    oneLine(inputs.map(wordsOf).join(' ⏎ '), MAX_INPUT_CHARACTERS),
  ];
}

function wordsOf(input: TaskRecord['inputs'][number]): string {
  if (typeof input === 'string') return input;
  const { content } = (input ?? {}) as { readonly content?: Parameters<typeof toText>[0] };
  return content === undefined ? JSON.stringify(input) : toText(content);
}
