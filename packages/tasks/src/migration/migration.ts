import { StoreClosedError, StoreSetupError } from '../errors.ts';
import { FORMAT, OLDEST_FORMAT } from '../rules/format.ts';
import { readStoreConfig, type TaskStoreConfig } from '../stores/factory.ts';
import { createPostgresMigrator } from '../stores/postgres/migrator.ts';
import { createRedisMigrator } from '../stores/redis/migrator.ts';
import { createSqliteMigrator } from '../stores/sqlite/migrator.ts';
import type { Migrator, MigratorState } from './migrator.ts';

/** Brings the data of a store to the newest format that this version can use, while processes use it. */
export interface Migration extends AsyncDisposable {
  /** Returns what there is to do. Changes nothing in a store that exists. */
  plan(): Promise<MigrationPlan>;
  /**
   * Creates what is missing and does every step that processes of the older version can bear. The format stays, so the
   * older version can still be used. Stopped by its signal, it continues later where it was.
   */
  run(options?: MigrationOptions): Promise<MigrationPlan>;
  /**
   * Also writes the new format, after which older versions are refused, and does the steps that had to wait for that.
   *
   * @throws {@link OlderWorkersError} when workers of an older version still hold tasks.
   */
  finish(options?: MigrationOptions): Promise<MigrationPlan>;
}

/** How a migration is watched and stopped. */
export interface MigrationOptions {
  readonly onProgress?: (progress: MigrationProgress) => void;
  /** Stops it after the part that is being done. */
  readonly signal?: AbortSignal;
}

/** Told after each part of a step. */
export interface MigrationProgress {
  readonly step: string;
  /** How many rows or keys this call has looked at. */
  readonly rows: number;
  readonly isDone: boolean;
}

/** What a migration has done and has to do. */
export interface MigrationPlan {
  /** Which store, without its password. */
  readonly store: string;
  /** The format that is written now. Left out if there is no store yet. */
  readonly format?: number;
  /** The formats that this version can use. */
  readonly oldest: number;
  readonly newest: number;
  readonly steps: readonly MigrationStep[];
  /** Workers that hold tasks and cannot use the next format. It cannot be finished before they have ended. */
  readonly olderWorkers: readonly string[];
  /** Workers without tasks that cannot use it, if they are still there. They will be refused once it is finished. */
  readonly olderWaiters: readonly string[];
}

/** One change of the stored data. */
interface MigrationStep {
  readonly name: string;
  /** The format that it leads to. */
  readonly format: number;
  readonly when: 'before-finish' | 'after-finish';
  readonly state: 'open' | 'started' | 'done';
}

/** Thrown when a migration cannot be finished because workers of an older version hold tasks. */
export class OlderWorkersError extends Error {
  override readonly name: string = 'OlderWorkersError';
  readonly code: string = 'OLDER_WORKERS';
  readonly workers: readonly string[];

  constructor(workers: readonly string[], format: number) {
    const more = workers.length > MAX_NAMED ? ` and ${workers.length - MAX_NAMED} more` : '';
    const names = `${workers.slice(0, MAX_NAMED).join(', ')}${more}`;
    super(
      `Format ${format} was not written: older workers hold tasks: ${names}; update or stop them, then finish again`,
    );
    this.workers = workers;
  }
}

const MAX_NAMED = 10;

/**
 * Opens the migration of a store, by the same configuration or address as `createTaskStore`.
 *
 * @returns The migration. Dispose it to close its connection.
 * @throws TypeError or {@link SettingsError} when the configuration is invalid or names a store in memory;
 * {@link StoreSetupError}, from its methods, when the store cannot be used.
 *
 * @example
 * ```ts
 * import { createMigration } from '@whoa/tasks';
 *
 * await using migration = createMigration('sqlite:tasks.db');
 * const { format, steps } = await migration.plan();
 * console.log(format, steps.length);
 * ```
 */
export function createMigration(config: TaskStoreConfig | string): Migration {
  const migrator = createMigrator(config);
  let isClosed = false;
  const run = async (options: MigrationOptions): Promise<MigrationPlan> => {
    if (isClosed) throw new StoreClosedError();
    return runSteps(migrator, options);
  };
  return {
    async plan() {
      if (isClosed) throw new StoreClosedError();
      return planOf(migrator, await migrator.state());
    },
    run: (options = {}) => run(options),
    async finish(options = {}) {
      for (;;) {
        const plan = await run(options);
        if (plan.format === FORMAT) return plan;
        options.signal?.throwIfAborted();
        const next = plan.format! + 1;
        const workers = await migrator.finish(next);
        if (workers.length > 0) throw new OlderWorkersError(workers, next);
      }
    },
    [Symbol.asyncDispose]() {
      isClosed = true;
      return migrator[Symbol.asyncDispose]();
    },
  };
}

function createMigrator(config: TaskStoreConfig | string): Migrator {
  const checked = readStoreConfig(config);
  switch (checked.backend) {
    case 'memory':
      throw new TypeError('store: a store in memory ends with its process and has nothing to migrate');
    case 'sqlite':
      return createSqliteMigrator(checked);
    case 'redis':
      return createRedisMigrator(checked);
    case 'postgres':
      return createPostgresMigrator(checked);
  }
}

async function runSteps(migrator: Migrator, { onProgress, signal }: MigrationOptions): Promise<MigrationPlan> {
  signal?.throwIfAborted();
  await migrator.begin();
  const state = await migrator.state();
  if (state === undefined) throw new StoreSetupError(`${migrator.store} is gone; run the migration again`);
  for (const { name } of dueSteps(migrator, state)) {
    for (let [rows, isDone] = [0, false]; !isDone; ) {
      signal?.throwIfAborted();
      const part = await migrator.runPart(name, signal);
      rows += part.rows;
      ({ isDone } = part);
      onProgress?.({ step: name, rows, isDone });
    }
  }
  return planOf(migrator, await migrator.state());
}

/** The steps that can be done before the next format is written. A finish marks those that follow it as started. */
function dueSteps(migrator: Migrator, { format: now, ...state }: MigratorState): MigrationStep[] {
  return stepsOf(migrator, { format: now, ...state }).filter((step) =>
    step.format <= now
      ? step.state === 'started'
      : step.format === now + 1 && step.when === 'before-finish' && step.state !== 'done',
  );
}

function stepsOf({ changes }: Migrator, state: MigratorState | undefined): MigrationStep[] {
  const found = (name: string): MigrationStep['state'] => {
    const isDone = state?.steps.get(name);
    return isDone === undefined ? 'open' : isDone ? 'done' : 'started';
  };
  return changes.flatMap(({ to: format, before, after }) => [
    ...before.map(({ name }): MigrationStep => ({ name, format, when: 'before-finish', state: found(name) })),
    ...after.map(({ name }): MigrationStep => ({ name, format, when: 'after-finish', state: found(name) })),
  ]);
}

async function planOf(migrator: Migrator, state: MigratorState | undefined): Promise<MigrationPlan> {
  const isBehind = state !== undefined && state.format < FORMAT;
  const older = isBehind ? await migrator.olderWorkers(state.format + 1) : { holding: [], waiting: [] };
  return {
    store: migrator.store,
    ...(state !== undefined && { format: state.format }),
    oldest: OLDEST_FORMAT,
    newest: FORMAT,
    // A store that does not exist yet, or was created by this version, has nothing to change.
    steps: stepsOf(migrator, state).filter((step) => isBehind || step.state !== 'open'),
    olderWorkers: older.holding,
    olderWaiters: older.waiting,
  };
}
