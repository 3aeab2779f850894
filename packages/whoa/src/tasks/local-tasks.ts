import { SettingsError } from '@whoa/core';
import {
  createSqliteStore,
  createTaskStore,
  isFinalStatus,
  type TaskHead,
  type TaskStore,
  type TaskStoreConfig,
} from '@whoa/tasks';
import { getDefaultSqlitePath } from '@whoa/tasks/internal';
import { UsageError } from '../command.ts';
import type { WhoaConfig } from '../config/config.ts';

/** The tenant of `run` and `acp`. The local file belongs to one user; users of a shared store share this tenant. */
export const LOCAL_TENANT = 'local';

const ID_CHARACTERS = 11;

/** Opens the store of the configuration. Defaults to the file that all terminals of this user share. */
export function openStore({ store }: Pick<WhoaConfig, 'store'>, env: NodeJS.ProcessEnv): TaskStore {
  if (store !== undefined && 'claim' in store) return store;
  if (store !== undefined && store.backend !== 'sqlite') return createConfiguredStore(store);
  const file = store?.file ?? getDefaultSqlitePath(env);
  try {
    return createSqliteStore({ ...store, file });
  } catch (error) {
    throw new Error(describeFailure(error as SqliteError, file), { cause: error });
  }
}

function createConfiguredStore(store: TaskStoreConfig): TaskStore {
  try {
    return createTaskStore(store);
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    throw new UsageError(`the store of the configuration is not valid: store.${error.message}`, 'CONFIG');
  }
}

/** Opens the store of the configuration for a process that shares its tasks with others. */
export function openSharedStore(config: Pick<WhoaConfig, 'store'>, command: string, env: NodeJS.ProcessEnv): TaskStore {
  const { store } = config;
  if (store === undefined || !('backend' in store) || store.backend !== 'memory') return openStore(config, env);
  const other = "'sqlite', 'redis' or 'postgres'";
  throw new UsageError(
    `whoa ${command} shares tasks with other processes, which a memory store cannot do: use ${other}`,
    'CONFIG',
  );
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
  const isPlace = errcode !== undefined || code !== undefined;
  const advice = 'set XDG_STATE_HOME to a folder that you can write to';
  return isPlace ? `cannot store tasks in ${file}: ${message}; ${advice}` : message;
}

/** The beginning of an id, short enough to type. */
export function shortId(id: string): string {
  return id.slice(0, ID_CHARACTERS);
}

/** Frees the tasks of workers whose lease has expired by the clock of the store. */
export async function freeLost(store: TaskStore): Promise<void> {
  for (let domain = 0; domain < store.domains; domain++) while ((await store.sweep({ domain })).more);
}

/** Whether the worker of a task died and no other worker has taken it. */
export function isLost({ status, stage, deaths }: TaskHead): boolean {
  return !isFinalStatus(status) && stage !== 'held' && deaths > 0;
}
