import { createMigration, type Migration, type MigrationPlan, type MigrationProgress } from '@whoa/tasks';
import { getDefaultSqlitePath } from '@whoa/tasks/internal';
import { type Command, EXIT, type Own, readArguments, UsageError } from '../command.ts';
import type { WhoaConfig } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { listenForEnd } from '../terminal/interrupts.ts';
import { Screen } from '../terminal/screen.ts';

const help = `whoa migrate [--plan | --finish] [--config FILE] [--json]

Brings the store of your configuration to the format of this version of Whoa, while workers of this version and of the one before
use it. Creates a store that does not exist yet. Can be stopped and run again at any time: it continues where it was.

  --plan         show what there is to do; change nothing
  --finish       write the new format, after which older versions are refused. Only when all workers have been updated
  --config FILE  the configuration file, which names the store
  --json         print one JSON object per line: progress, then the plan

Exit code: 0 if it is done, 1 if it failed or older workers are in the way, 130 if it was stopped.`;

const OPTIONS = {
  plan: { type: 'boolean', default: false },
  finish: { type: 'boolean', default: false },
  config: { type: 'string' },
} as const;

export const migrateCommand: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Own): Promise<number> {
  const { values } = readArguments(args, OPTIONS);
  const { plan: isPlan, finish: isFinish, json: asJson } = values;
  if (isPlan && isFinish) throw new UsageError('--plan and --finish cannot be combined');
  const migration = own(openMigration(await loadConfig(values.config)));
  const screen = own(new Screen());
  const stop = new AbortController();
  own(
    listenForEnd(() => {
      if (stop.signal.aborted) process.exit(EXIT.cancelled);
      stop.abort();
    }),
  );
  const onProgress = asJson ? (progress: object) => screen.data({ type: 'step', ...progress }) : show(screen);
  try {
    const options = { onProgress, signal: stop.signal };
    const plan = await (isPlan ? migration.plan() : isFinish ? migration.finish(options) : migration.run(options));
    if (asJson) screen.data({ type: 'plan', ...plan });
    else for (const line of linesOf(plan)) screen.line(line);
    return EXIT.success;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    if (asJson) screen.data({ type: 'stopped' });
    else screen.note('stopped; run it again to continue where it was');
    return EXIT.cancelled;
  }
}

function openMigration({ store }: WhoaConfig): Migration {
  if (store !== undefined && 'claim' in store) {
    throw new UsageError('the store of your configuration is an object: call createMigration of @whoa/tasks', 'CONFIG');
  }
  if (store?.backend === 'memory') throw new UsageError('a store in memory has nothing to migrate', 'CONFIG');
  if (store !== undefined && store.backend !== 'sqlite') return createMigration(store);
  return createMigration({ backend: 'sqlite', ...store, file: store?.file ?? getDefaultSqlitePath() });
}

/** A step that takes long is shown while it runs on a terminal, and once when it is done. */
function show(screen: Screen): (progress: MigrationProgress) => void {
  let last = '';
  return ({ step, rows, isDone }) => {
    last = `${step}${rows > 0 ? `: ${rows.toLocaleString('en')} rows` : ''}`;
    screen.status(isDone ? undefined : () => last);
    if (isDone) screen.note(`✔ ${last}`);
  };
}

function* linesOf({ store, format, newest, steps, olderWorkers, olderWaiters }: MigrationPlan): Generator<string> {
  if (format === undefined) {
    yield `${store} does not exist yet; 'whoa migrate' creates it with format ${newest}.`;
    return;
  }
  yield `${store} has format ${format}; the newest of this version of Whoa is ${newest}.`;
  for (const { name, when, state } of steps) {
    yield `  ${state.padEnd(5)}  ${name}${when === 'after-finish' ? ' (after --finish)' : ''}`;
  }
  if (format === newest) {
    if (steps.every(({ state }) => state === 'done')) yield 'There is nothing to do.';
    return;
  }
  const isReady = steps.every(({ when, state }) => when === 'after-finish' || state === 'done');
  if (!isReady) yield `Next: 'whoa migrate', which older versions of Whoa do not notice.`;
  else if (olderWorkers.length > 0) yield `Next: update or stop the workers ${olderWorkers.join(', ')}.`;
  else yield `Next: 'whoa migrate --finish', once no process of an older version is in use.`;
  if (olderWaiters.length > 0)
    yield `Idle in the last minute, and refused after the finish: ${olderWaiters.join(', ')}.`;
}
