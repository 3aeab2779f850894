import { type Command, EXIT, readArguments, readDuration, UsageError, type Use } from '../../command.ts';
import { findUnreadConfig } from '../../config/load.ts';
import type { System } from '../../system.ts';
import { shortId } from '../../tasks/local-tasks.ts';
import { describeResume, describeTarget, readTarget } from '../../tasks/pauses.ts';
import { openTaskSource } from '../../tasks/source/open-task-source.ts';
import type { TaskSource } from '../../tasks/source/task-source.ts';
import { commandName } from '../../terminal/command-name.ts';
import { Screen } from '../../terminal/screen.ts';
import { oneLine } from '../../terminal/text/plain-text.ts';

const help = `whoa halt --all | --agent NAME | --tenant NAME [options]

Pauses delivery of tasks, stops them, and waits until none of them runs. Prints one receipt: the stopped tasks, those that still run, and
by when they will have ended. New tasks are accepted and wait until 'whoa resume'. A task that only waits for an answer does not run: it
stays, is counted apart, and does not continue before 'whoa resume'. Other tasks in the store continue; the receipt shows how many run.

A halt reaches what is in the store. It does not reach runs without a store, or agents behind 'whoa acp -- COMMAND'.

  --all               every task of every agent and tenant, and of tenants that come later
  --agent NAME        this agent's tasks, for every tenant
  --tenant NAME       this tenant's tasks, for every agent; 'local' is the tenant of 'whoa run', 'whoa chat' and 'whoa acp'
  --mode MODE         graceful, now or kill, as for 'whoa cancel'; defaults to now
  --parked            also stop tasks that only wait for an answer
  --reason TEXT       why; recorded in every task
  --timeout DURATION  how long to wait; defaults to 30s
  --server URL        use this 'whoa serve' instead of the store, with the token in WHOA_TOKEN; needs the right 'halt'
  --config FILE       the configuration file, which may specify another store
  --json              print one JSON object

Exit code: 0 if none of them runs any more, otherwise 1.`;

const OPTIONS = {
  all: { type: 'boolean', default: false },
  agent: { type: 'string' },
  tenant: { type: 'string' },
  mode: { type: 'string', values: ['graceful', 'now', 'kill'] },
  parked: { type: 'boolean', default: false },
  reason: { type: 'string' },
  timeout: { type: 'string', default: '30s' },
  server: { type: 'string' },
  config: { type: 'string' },
} as const;

/** The longest wait of one request: a server allows no more. */
const MAX_WAIT_MS = 30_000;

export const command: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values } = readArguments(args, OPTIONS);
  const { server, config, parked, reason, mode = 'now' } = values;
  const target = readTarget(values);
  const endsAt = performance.now() + readDuration('--timeout', values.timeout);
  const source = own(await openTaskSource({ server, config }, system));
  const { location } = source;
  if (target === undefined) {
    const seen = `'${commandName(system.env)} tasks --stats --all-tenants' lists what is in ${location}`;
    throw new UsageError(`nothing was halted: expected --all, --agent NAME or --tenant NAME; ${seen}`);
  }
  const screen = own(new Screen(system, values));
  const scope = describeTarget(target);
  if (!values.json) screen.status(() => `waiting until nothing of ${scope} runs in ${location}`);
  const halt = (): ReturnType<TaskSource['halt']> => {
    const waitMs = Math.min(MAX_WAIT_MS, Math.max(0, Math.round(endsAt - performance.now())));
    return source.halt(target, { mode, parked, reason, waitMs });
  };
  let receipt = await halt();
  let { stopped } = receipt;
  while (!receipt.isQuiet && performance.now() < endsAt) {
    receipt = await halt();
    stopped += receipt.stopped;
  }
  screen.status(undefined);
  const unread = server === undefined && config === undefined ? findUnreadConfig(system) : undefined;
  if (unread !== undefined)
    screen.note(`${unread} in this folder was not read, and may specify another store: add --config ${unread}`);
  const { isQuiet, left, running, waiting, others } = receipt;
  screen.data({ type: 'halt', ...target, store: location, isQuiet, stopped, left, waiting, running, others });
  const were = stopped === 1 ? `1 task of ${scope} was` : `${stopped} tasks of ${scope} were`;
  screen.line(`${were} stopped in ${location}; new ones wait until: ${describeResume(target, system.env, values)}`);
  for (const one of running)
    screen.line(`${shortId(one.id)} ${one.status}, ${oneLine(one.agent, 40)}: ${describeUntil(one.until)}`);
  if (waiting > 0)
    screen.line(
      `${waiting === 1 ? '1 task waits for an answer and stays' : `${waiting} tasks wait for answers and stay`}; --parked stops ${waiting === 1 ? 'it' : 'them'} too.`,
    );
  const rest = others === 0 ? '' : `; ${count(others, 'other task')} in this store`;
  const end = isQuiet ? `Nothing of ${scope} runs` : `${count(left, 'task')} of ${scope} still`;
  screen.line(`${end}${'all' in target ? ` in ${location}` : rest}.`);
  return isQuiet ? EXIT.success : EXIT.failed;
}

function count(tasks: number, name: string): string {
  return tasks === 1 ? `1 ${name} runs` : `${tasks} ${name}s run`;
}

function describeUntil(until: number | undefined): string {
  if (until === undefined) return 'not stopped yet';
  return `until ${new Date(until).toISOString()} at most, if its worker lives`;
}
