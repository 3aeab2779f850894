import { type MigrationPlan, migrateStore, type TaskStoreConfig } from '@whoa/tasks';
import { getDefaultSqlitePath } from '@whoa/tasks/internal';
import { type Command, EXIT, readArguments, UsageError, type Use } from '../command.ts';
import type { WhoaConfig } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import type { System } from '../system.ts';
import { getStore } from '../tasks/local-tasks.ts';
import { Screen } from '../terminal/screen.ts';

const help = `whoa migrate [--plan | --finish] [--config FILE] [--json]

Prepares your configuration's store for this version of Whoa, while workers of this version and the previous one use it: creates the
store if it does not exist, and adds columns and indexes. You can run it again at any time.

  --plan         show the steps and change nothing
  --finish       also write the new format; older versions can then no longer use the store. Run it when no process uses an older version
  --config FILE  the configuration file, which specifies the store
  --json         print one JSON object

Exit code: 0 success, 1 failed.`;

const NO_ADDRESS = `the store of your configuration has no address: write 'store: process.env.STORE_URL' instead of creating it, or call migrateStore of @whoa/tasks`;
const OPTIONS = {
  plan: { type: 'boolean', default: false },
  finish: { type: 'boolean', default: false },
  config: { type: 'string' },
} as const;

export const command: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values } = readArguments(args, OPTIONS);
  const { plan: isPlan, finish: isFinish } = values;
  if (isPlan && isFinish) throw new UsageError('--plan and --finish cannot be combined');
  const store = findStore(await loadConfig(values.config, system), system.env);
  const screen = own(new Screen(system, values));
  const plan = await migrateStore(store, isPlan ? 'plan' : isFinish ? 'finish' : 'prepare');
  screen.data({ type: 'plan', ...plan });
  for (const line of formatLines(plan)) screen.line(line);
  return EXIT.success;
}

function findStore(config: WhoaConfig, env: NodeJS.ProcessEnv): TaskStoreConfig {
  const store = getStore(config);
  if (store !== undefined && 'claim' in store) throw new UsageError(NO_ADDRESS, 'CONFIG');
  if (store?.backend === 'memory') throw new UsageError('the memory store has no data to migrate', 'CONFIG');
  if (store !== undefined && store.backend !== 'sqlite') return store;
  return { backend: 'sqlite', ...store, file: store?.file ?? getDefaultSqlitePath(env) };
}

function* formatLines({ store, format, newest, missing }: MigrationPlan): Generator<string> {
  if (format === undefined) {
    yield `${store} does not exist yet; 'whoa migrate' creates it with format ${newest}.`;
    return;
  }
  yield `${store} has format ${format}; the newest of this version of Whoa is ${newest}.`;
  for (const name of missing) yield `  missing: ${name}`;
  if (missing.length > 0) yield `Next: 'whoa migrate' adds what is missing. Older versions of Whoa do not notice.`;
  else if (format < newest) yield `Next: 'whoa migrate --finish', once no process of an older version is left.`;
  else yield 'There is nothing to do.';
}
