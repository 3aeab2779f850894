import { SettingsError } from '@whoa/core';
import { createTaskStore, isFinalStatus, type TaskStore, type TaskStoreConfig, type TaskSummary } from '@whoa/tasks';
import { createSqliteStore, getDefaultSqlitePath, readStoreConfig } from '@whoa/tasks/internal';
import { UsageError } from '../command.ts';
import type { WhoaConfig } from '../config/config.ts';

/** The tenant of `run` and `acp`. The local file belongs to one user; users of a shared store share this tenant. */
export const LOCAL_TENANT = 'local';

const ID_CHARACTERS = 10;

/** Opens the store of the configuration. Defaults to the file that all terminals of this user share. */
export function openStore(config: Pick<WhoaConfig, 'store'>, env: NodeJS.ProcessEnv): TaskStore {
  const given = getStore(config);
  if (given !== undefined && 'claim' in given) return given;
  const store = given && withBus(given, env['BUS_URL']);
  if (store !== undefined && store.backend !== 'sqlite') return createTaskStore(store);
  const file = store?.file ?? getDefaultSqlitePath(env);
  try {
    return createSqliteStore({ ...store, file });
  } catch (error) {
    throw new Error(describeFailure(error as SqliteError, file), { cause: error });
  }
}

/** A bus in the configuration comes before the one of the environment. */
function withBus(store: TaskStoreConfig, bus: string | undefined): TaskStoreConfig {
  if (bus === undefined || store.backend !== 'postgres') return store;
  try {
    return readStoreConfig({ bus, ...store });
  } catch (error) {
    const { message } = error as SettingsError;
    throw new UsageError(message.replace(/^bus:/, 'BUS_URL:'), 'CONFIG');
  }
}

/** Returns the store of the configuration, or its options. */
export function getStore({ store }: Pick<WhoaConfig, 'store'>): TaskStoreConfig | TaskStore | undefined {
  if (store === undefined || (typeof store === 'object' && 'claim' in store)) return store;
  try {
    return readStoreConfig(store, 'store');
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    throw new UsageError(`the configuration is not valid: ${error.message}`, 'CONFIG');
  }
}

/** Describes the store of the configuration to users, without what could be a password. */
export function describeStore(
  config: Pick<WhoaConfig, 'store'>,
  env: NodeJS.ProcessEnv,
): { name: string; location: string } {
  const store = getStore(config);
  if (store === undefined || ('backend' in store && store.backend === 'sqlite')) {
    return { name: 'SQLite', location: store?.file ?? getDefaultSqlitePath(env) };
  }
  const name = 'backend' in store ? store.backend : 'store';
  return { name, location: `the ${name === 'store' ? '' : `${name} `}store of your configuration` };
}

/** Opens the store of the configuration for a process that shares its tasks with others. */
export function openSharedStore(config: Pick<WhoaConfig, 'store'>, command: string, env: NodeJS.ProcessEnv): TaskStore {
  const store = getStore(config);
  if (store === undefined || !('backend' in store) || store.backend !== 'memory') return openStore(config, env);
  const why = `whoa ${command} shares tasks with other processes, which a memory store cannot do`;
  throw new UsageError(`${why}: use 'sqlite' or 'postgres'`, 'CONFIG');
}

type SqliteError = Error & { readonly code?: string; readonly errcode?: number };

const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOT_A_DATABASE = 26;

/** Adds the file and what to do to a SQLite error, which has neither. */
function describeFailure({ message, errcode, code }: SqliteError, file: string): string {
  if (errcode === SQLITE_BUSY) return `another process has locked ${file}; try again, or end that process`;
  if (errcode === SQLITE_CORRUPT || errcode === SQLITE_NOT_A_DATABASE) {
    return `${file} is corrupt (${message}); move it away, and a new one is created`;
  }
  if (errcode === undefined && code === undefined) return message;
  return `cannot store tasks in ${file}: ${message}; set XDG_STATE_HOME to a folder that you can write to`;
}

/** The beginning of an id, short enough to type. */
export function shortId(id: string): string {
  return id.slice(0, ID_CHARACTERS);
}

/** Frees the tasks of workers whose lease has expired, and ends overdue ones. Leaves old records to the workers. */
export async function reclaimLost(store: TaskStore): Promise<void> {
  while ((await store.sweep()).reclaimed > 0);
}

/** Whether the worker of a task died and no other worker has taken it. */
export function isLost({ status, stage, crashes, activity }: TaskSummary): boolean {
  const isKept = stage === 'held' || stage === 'parked' || activity?.providerWait !== undefined;
  return !isFinalStatus(status) && !isKept && crashes > 0;
}
