import type { TaskStore } from '@whoa/tasks';
import { type Command, EXIT, readArguments, UsageError, type Use } from '../command.ts';
import { loadConfig } from '../config/load.ts';
import type { System } from '../system.ts';
import { openSharedStore } from '../tasks/local-tasks.ts';
import { Screen } from '../terminal/screen.ts';
import { oneLine } from '../terminal/text/plain-text.ts';

const help = `whoa engine [off AGENT...] [options]

Lists the agents whose tasks an engine delivers, such as BullMQ. An engine takes its agents when it starts.

  off AGENT       workers take this agent's tasks from the store again, also those that wait now. First stop all processes
                  that have the engine: they would take it back at their next start. Exits with 1 if no engine had it

  --config FILE   the configuration file, which may specify another store
  --json          print one JSON object per agent`;

const OPTIONS = { config: { type: 'string' } } as const;
const MAX_NAME = 200;

export const command: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values, positionals } = readArguments(args, OPTIONS, Infinity);
  const [action, ...agents] = positionals;
  if (action !== undefined && (action !== 'off' || agents.length === 0)) throw new UsageError('expected: off AGENT');
  const store = own(openSharedStore(await loadConfig(values.config, system), 'engine', system.env));
  const screen = own(new Screen(system, values));
  if (action === 'off') return takeBack(agents, store, screen);
  const { engines } = await store.queues({ limit: 1 });
  for (const [agent, engine] of Object.entries(engines)) {
    screen.data({ type: 'engine', agent, engine });
    screen.line(`${oneLine(agent, MAX_NAME)}: delivered by the engine ${oneLine(engine, MAX_NAME)}`);
  }
  if (Object.keys(engines).length === 0 && !values.json) screen.note('No engine delivers any agent.');
  return EXIT.success;
}

/** Also moves what an interrupted command has left, so it is repeated for agents that no engine has. */
async function takeBack(agents: readonly string[], store: TaskStore, screen: Screen): Promise<number> {
  const { engines } = await store.queues({ limit: 1 });
  for (const agent of agents) {
    await store.setEngine(agent, undefined);
    const engine = engines[agent];
    const name = oneLine(agent, MAX_NAME);
    screen.data({ type: 'engine', agent, engine: null, takenFrom: engine ?? null });
    if (engine === undefined)
      screen.note(`${name}: no engine delivers this agent, so nothing was changed. Check the name: whoa engine`);
    else
      screen.line(`${name}: taken from the engine ${oneLine(engine, MAX_NAME)}; workers take its tasks from the store`);
  }
  return agents.every((agent) => engines[agent] !== undefined) ? EXIT.success : EXIT.failed;
}
