import { textOf } from '@whoa/core';
import type { TaskRecord, TaskStatus } from '@whoa/tasks';
import { type Command, EXIT, type Own, readArguments, UsageError } from '../command.ts';
import { loadConfig } from '../config/load.ts';
import { findLost, LOCAL_TENANT, openStore, shortId } from '../tasks/local-tasks.ts';
import { inWords } from '../terminal/durations.ts';
import { oneLine } from '../terminal/plain-text.ts';
import { Screen } from '../terminal/screen.ts';
import { formatTable } from '../terminal/table.ts';

const help = `whoa tasks [options]

Lists the tasks of this machine, or of the store in your configuration, newest first: what runs now, and what has ended in the
last week.

  --status STATUS   only init, running, cancelling, success, failed or cancelled
  --limit N         how many; 20 unless given
  --config FILE     the configuration, which may name another store
  --json            one JSON object a line

A task is 'lost' when the process that ran it died; 'whoa cancel' settles it.`;

const STATUSES: readonly TaskStatus[] = ['init', 'running', 'cancelling', 'success', 'failed', 'cancelled'];
const OPTIONS = {
  status: { type: 'string' },
  limit: { type: 'string', default: '20' },
  config: { type: 'string' },
} as const;
const HEADINGS = ['TASK', 'STATUS', 'AGENT', 'AGE', 'TOOK', 'INPUT'];
/** What goes first where there is no room: the agent, how long it took, its age. */
const LESS_WANTED = [2, 4, 3];
const LIMIT_MAX = 10_000;
const INPUT_CHARACTERS_MAX = 200;

export const tasksCommand: Command = { help, run };

async function run(args: readonly string[], own: Own): Promise<number> {
  const { values } = readArguments(args, OPTIONS);
  const limit = Number(values.limit);
  if (!(Number.isInteger(limit) && limit > 0 && limit <= LIMIT_MAX)) {
    throw new UsageError(`--limit: '${values.limit}' is no whole number from 1 to ${LIMIT_MAX}`);
  }
  const status = STATUSES.find((one) => one === values.status);
  if (values.status !== undefined && status === undefined) {
    throw new UsageError(`--status: '${values.status}' is none of ${STATUSES.join(', ')}`);
  }
  const config = await loadConfig(values.config);
  const screen = own(new Screen({ onGone: ({ code }) => process.exit(code === 'EPIPE' ? EXIT.success : EXIT.failed) }));
  const store = own(openStore(config));
  if (!values.json) screen.status(() => 'asking the store');
  const { tasks, next } = await store.list({ tenant: LOCAL_TENANT, limit, ...(status && { status }) });
  const lost = await findLost(store, tasks);
  screen.status(undefined);
  if (values.json) for (const task of tasks) screen.data({ ...task, lost: lost.has(task.id) });
  else if (tasks.length === 0) screen.note("No tasks; 'whoa run' makes one.");
  else for (const line of table(tasks, lost)) screen.line(line);
  if (!values.json && next !== undefined) screen.note(screen.style('dim', '… and older ones; --limit shows more'));
  return EXIT.success;
}

function table(tasks: readonly TaskRecord[], lost: ReadonlySet<string>): string[] {
  const rows = tasks.map((task) => rowOf(task, lost.has(task.id)));
  return formatTable(HEADINGS, rows, { width: process.stdout.columns ?? 120, lessWanted: LESS_WANTED });
}

function rowOf(task: TaskRecord, isLost: boolean): string[] {
  const now = Date.now();
  const { id, status, agent, createdAt, startedAt, endedAt, inputs } = task;
  const took = startedAt === undefined ? '' : inWords((endedAt ?? now) - startedAt);
  return [
    shortId(id),
    isLost ? 'lost' : status,
    oneLine(agent, 20),
    inWords(now - createdAt),
    took,
    oneLine(inputs.map(wordsOf).join(' ⏎ '), INPUT_CHARACTERS_MAX),
  ];
}

function wordsOf(input: TaskRecord['inputs'][number]): string {
  if (typeof input === 'string') return input;
  const { content } = (input ?? {}) as { readonly content?: Parameters<typeof textOf>[0] };
  return content === undefined ? JSON.stringify(input) : textOf(content);
}
