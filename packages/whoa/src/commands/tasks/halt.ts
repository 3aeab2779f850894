import { setTimeout as delay } from 'node:timers/promises';
import { CLEANUP_MS } from '@whoa/core/internal';
import type { PauseTarget, TaskSummary } from '@whoa/tasks';
import { mapInBatches } from '@whoa/tasks/internal';
import { type Command, EXIT, readArguments, readDuration, UsageError, type Use } from '../../command.ts';
import type { System } from '../../system.ts';
import { isLost, shortId } from '../../tasks/local-tasks.ts';
import { describeResume, describeTarget } from '../../tasks/pauses.ts';
import { readFleet } from '../../tasks/show-overview.ts';
import type { FollowOptions } from '../../tasks/source/follow-task.ts';
import { openTaskSource } from '../../tasks/source/open-task-source.ts';
import { listLiveTasks, type TaskSource } from '../../tasks/source/task-source.ts';
import { commandName } from '../../terminal/command-name.ts';
import { Screen } from '../../terminal/screen.ts';
import { oneLine } from '../../terminal/text/plain-text.ts';

const help = `whoa halt --agent NAME | --tenant NAME [options]

Pauses delivery of an agent's or a tenant's tasks, stops them, and waits until none of them runs. Prints one receipt: the stopped tasks,
those that still run, and by when they will have ended. New tasks are accepted and wait until 'whoa resume'. A task that only waits for
an answer does not run: it stays, is counted apart, and does not continue before 'whoa resume'. Other tasks in the store continue; the
receipt shows how many of them run.

  --agent NAME        this agent's tasks, for every tenant
  --tenant NAME       this tenant's tasks, for every agent; 'local' is the tenant of 'whoa run', 'whoa chat' and 'whoa acp'
  --mode MODE         graceful, now or kill, as for 'whoa cancel'; defaults to now
  --parked            also stop tasks that only wait for an answer
  --reason TEXT       why; recorded in every task
  --timeout DURATION  how long to wait; defaults to 30s
  --server URL        use this 'whoa serve' instead of the store, with the token in WHOA_TOKEN
  --config FILE       the configuration file, which may specify another store
  --json              print one JSON object

Exit code: 0 if none of them runs any more, otherwise 1.`;

const OPTIONS = {
  agent: { type: 'string' },
  tenant: { type: 'string' },
  mode: { type: 'string', values: ['graceful', 'now', 'kill'] },
  parked: { type: 'boolean', default: false },
  reason: { type: 'string' },
  timeout: { type: 'string', default: '30s' },
  server: { type: 'string' },
  config: { type: 'string' },
} as const;

/** How many tasks of each status are stopped in one round. */
const MAX_ROUND = 1_000;
const ROUND_MS = 100;
/** How many tasks a receipt names. */
const MAX_NAMED = 100;

export const command: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values } = readArguments(args, OPTIONS);
  const { agent, tenant, server, config } = values;
  if (agent !== undefined && tenant !== undefined) throw new UsageError('--agent and --tenant cannot be combined');
  if (agent === '' || tenant === '') throw new UsageError('expected a name');
  const timeoutMs = readDuration('--timeout', values.timeout);
  const source = own(await openTaskSource({ server, config, tenant, 'all-tenants': agent !== undefined }, system));
  const { location } = source;
  const target = readTarget({ agent, tenant }, location, system.env);
  const screen = own(new Screen(system, values));
  await source.pause(target, true);
  const scope = describeTarget(target);
  if (!values.json) screen.status(() => `waiting until nothing of ${scope} runs in ${location}`);
  const order = { reason: values.reason, mode: values.mode ?? 'now', undo: false };
  const isMeant = ({ stage }: TaskSummary): boolean => values.parked || stage !== 'parked';
  const { stopped, left, waiting } = await stopAll(source, { agent, order, timeoutMs, isMeant });
  const others = await countOthers(source, target, left);
  screen.status(undefined);
  const running = await Promise.all(
    left.slice(0, MAX_NAMED).map(async ({ id, tenant: owner, agent: name, status, stop }) => {
      const until = stop && Math.max(stop.killAt, await findWaitEnd(source, id)) + CLEANUP_MS;
      return { id, tenant: owner, agent: name, status, ...(until !== undefined && { until }) };
    }),
  );
  const isQuiet = left.length === 0;
  const counted = others !== undefined && { others };
  screen.data({
    type: 'halt',
    ...target,
    store: location,
    isQuiet,
    stopped,
    left: left.length,
    waiting,
    running,
    ...counted,
  });
  screen.line(
    `${stopped === 1 ? '1 task' : `${stopped} tasks`} of ${scope} ${stopped === 1 ? 'was' : 'were'} stopped in ${location}; new ones wait until: ${describeResume(target, system.env, values)}`,
  );
  for (const one of running)
    screen.line(`${shortId(one.id)} ${one.status}, ${oneLine(one.agent, 40)}: ${describeUntil(one.until)}`);
  if (waiting > 0)
    screen.line(
      `${waiting === 1 ? '1 task waits for an answer and stays' : `${waiting} tasks wait for answers and stay`}; --parked stops ${waiting === 1 ? 'it' : 'them'} too.`,
    );
  const rest = others === undefined || others === 0 ? '' : `; ${count(others, 'other task')} in this store`;
  screen.line(`${isQuiet ? `Nothing of ${scope} runs` : `${count(left.length, 'task')} of ${scope} still`}${rest}.`);
  return isQuiet ? EXIT.success : EXIT.failed;
}

function count(tasks: number, name: string): string {
  return tasks === 1 ? `1 ${name} runs` : `${tasks} ${name}s run`;
}

function readTarget(
  { agent, tenant }: Readonly<Record<'agent' | 'tenant', string | undefined>>,
  location: string,
  env: NodeJS.ProcessEnv,
): PauseTarget {
  if (agent !== undefined) return { agent };
  if (tenant !== undefined) return { tenant };
  const seen = `'${commandName(env)} tasks --stats --all-tenants' lists what is in ${location}`;
  throw new UsageError(`nothing was halted: expected --agent NAME or --tenant NAME; ${seen}`);
}

/** Counts what else runs in the store. A server tells it only to operators. */
async function countOthers(
  source: TaskSource,
  target: PauseTarget,
  left: readonly TaskSummary[],
): Promise<number | undefined> {
  const { agents } = await readFleet(source);
  if (agents.length === 0) return undefined;
  const others = 'agent' in target ? agents.filter(({ agent }) => agent !== target.agent) : agents;
  const running = others.reduce((sum, one) => sum + one.running, 0);
  const ours = 'agent' in target ? 0 : left.filter(({ stage }) => stage === 'held').length;
  return Math.max(0, running - ours);
}

/** Returns when the last call that must finish is given up. Its tool says how long it may take, and the journal tells. */
async function findWaitEnd(source: TaskSource, id: string): Promise<number> {
  let end = 0;
  const onEntry: FollowOptions['onEntry'] = ({ event }) => {
    const { type, until } = event as { readonly type?: unknown; readonly until?: unknown };
    if (type === 'call-waiting' && typeof until === 'number') end = Math.max(end, until);
    return undefined;
  };
  // It may have ended, or been erased, since it was listed.
  await source.follow(id, { onEntry, onRecord: () => 'stop' }).catch(() => undefined);
  return end;
}

interface Halt {
  readonly agent: string | undefined;
  readonly order: Parameters<TaskSource['cancel']>[1];
  readonly timeoutMs: number;
  readonly isMeant: (task: TaskSummary) => boolean;
}

/** Stops what is live, round by round: a task may have been created or taken while the round before was read. */
async function stopAll(
  source: TaskSource,
  { agent, order, timeoutMs, isMeant }: Halt,
): Promise<{ readonly stopped: number; readonly left: readonly TaskSummary[]; readonly waiting: number }> {
  const filter = { agent, limit: agent === undefined ? MAX_ROUND : 100 * MAX_ROUND };
  const endsAt = performance.now() + timeoutMs;
  const stopped = new Set<string>();
  for (;;) {
    const all = await listLiveTasks(source, filter);
    const live = all.filter(isMeant);
    const fresh = live.filter(({ id }) => !stopped.has(id));
    await mapInBatches(fresh, async ({ id }) => {
      const { result } = await source.cancel(id, order);
      if (result !== 'too-late' && result !== 'not-found') stopped.add(id);
    });
    await settleOrphaned(source, live);
    // What was created since waits: it is paused.
    const left =
      live.length === 0
        ? []
        : (await listLiveTasks(source, filter))
            .filter(isMeant)
            .filter(({ id, status }) => status !== 'init' || stopped.has(id));
    const isOver = left.length === 0 && fresh.length < MAX_ROUND;
    if (isOver || performance.now() >= endsAt)
      return { stopped: stopped.size, left, waiting: all.length - live.length };
    await delay(ROUND_MS);
  }
}

/** Writes the ends of tasks whose workers died: no one else may be there to do it. */
async function settleOrphaned(source: TaskSource, live: readonly TaskSummary[]): Promise<void> {
  await source.reclaimLost();
  for (const { id } of live.filter((task) => isLost(task)).slice(0, MAX_NAMED)) {
    const record = await source.get(id);
    if (record?.stop !== undefined && isLost(record)) await source.settleOrphaned(record);
  }
}

function describeUntil(until: number | undefined): string {
  if (until === undefined) return 'not stopped yet';
  return `until ${new Date(until).toISOString()} at most, if its worker lives`;
}
