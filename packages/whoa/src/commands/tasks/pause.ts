import { type Command, EXIT, readArguments, UsageError, type Use } from '../../command.ts';
import type { System } from '../../system.ts';
import { describeResume, describeTarget, readTarget } from '../../tasks/pauses.ts';
import { openTaskSource } from '../../tasks/source/open-task-source.ts';
import { Screen } from '../../terminal/screen.ts';

const TARGETS = `  --all           every task of every agent and tenant, and of tenants that come later
  --agent NAME    this agent's tasks, for every tenant
  --tenant NAME   this tenant's tasks, for every agent
  --server URL    use this 'whoa serve' instead of the store, with the token in WHOA_TOKEN
  --config FILE   the configuration file, which may specify another store
  --json          print one JSON object`;

const pauseHelp = `whoa pause --all | --agent NAME | --tenant NAME [options]

Pauses delivery: workers take no tasks until 'whoa resume'. Running tasks continue, new tasks are accepted and queued, and
'whoa cancel' still works.

${TARGETS}`;

const resumeHelp = `whoa resume --all | --agent NAME | --tenant NAME [options]

Resumes delivery after 'whoa pause' or 'whoa halt'. 'whoa tasks --stats' shows what is paused. Each
pause ends on its own: 'whoa resume --all' leaves those of agents and tenants.

${TARGETS}`;

const OPTIONS = {
  all: { type: 'boolean', default: false },
  agent: { type: 'string' },
  tenant: { type: 'string' },
  server: { type: 'string' },
  config: { type: 'string' },
} as const;

export const command: Command = { help: pauseHelp, options: OPTIONS, run: setDelivery(true) };
export const resumeCommand: Command = { help: resumeHelp, options: OPTIONS, run: setDelivery(false) };

function setDelivery(isPaused: boolean): Command['run'] {
  return (args, own, system) => run(args, isPaused, { own, system });
}

async function run(args: readonly string[], isPaused: boolean, { own, system }: { own: Use; system: System }) {
  const { values } = readArguments(args, OPTIONS);
  const { server, config } = values;
  const target = readTarget(values);
  if (target === undefined) throw new UsageError('expected one of --all, --agent and --tenant');
  const source = own(await openTaskSource({ server, config }, system));
  const screen = own(new Screen(system, values));
  await source.pause(target, isPaused);
  screen.data({ type: isPaused ? 'paused' : 'resumed', ...target, store: source.location });
  const then = isPaused ? `wait until: ${describeResume(target, system.env, values)}` : 'are delivered again';
  screen.line(`tasks of ${describeTarget(target)} in ${source.location} ${then}`);
  return EXIT.success;
}
