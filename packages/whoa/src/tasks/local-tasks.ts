import {
  createSqliteStore,
  createTaskStore,
  defaultSqlitePath,
  isFinal,
  type TaskRecord,
  type TaskStore,
} from '@whoa/tasks';
import { UsageError } from '../command.ts';
import type { WhoaConfig } from '../config/config.ts';

/** Whose the tasks of this machine's store are: its file belongs to one user. Who shares another store shares its tasks. */
export const LOCAL_TENANT = 'local';

const LISTED_MAX = 1_000;
const SHOWN_MAX = 3;
const ID_CHARACTERS = 11;

/** Opens the store of the configuration; without one, that which every terminal of this user shares. */
export function openStore({ store }: Pick<WhoaConfig, 'store'>): TaskStore {
  if (store !== undefined && 'claim' in store) return store;
  if (store !== undefined && store.backend !== 'sqlite') return createTaskStore(store);
  const file = store?.file ?? defaultSqlitePath();
  try {
    return createSqliteStore({ ...store, file });
  } catch (error) {
    throw new Error(explain(error as SqliteError, file), { cause: error });
  }
}

type SqliteError = Error & { readonly code?: string; readonly errcode?: number };

const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOT_A_DATABASE = 26;

/** Whose file it is, and what to do: SQLite says neither. */
function explain({ message, errcode, code }: SqliteError, file: string): string {
  if (errcode === SQLITE_BUSY) return `another process holds ${file}; try again, or end that process`;
  if (errcode === SQLITE_CORRUPT || errcode === SQLITE_NOT_A_DATABASE) {
    return `${file} is broken (${message}); move it away, and a new one is made`;
  }
  const isPlace = errcode !== undefined || code !== undefined;
  const advice = 'set XDG_STATE_HOME to a folder of your own that can be written to';
  return isPlace ? `tasks cannot be kept in ${file}: ${message}; ${advice}` : message;
}

/** As much of an id as a person wants to type. */
export function shortId(id: string): string {
  return id.slice(0, ID_CHARACTERS);
}

/** Finds the task that a person means by an id or its beginning. */
export async function findTask(store: TaskStore, given: string | undefined): Promise<TaskRecord> {
  if (!given) throw new UsageError("say which task; 'whoa tasks' lists them");
  const exact = await store.get({ tenant: LOCAL_TENANT, id: given });
  if (exact !== undefined) return exact;
  const { tasks } = await store.list({ tenant: LOCAL_TENANT, limit: LISTED_MAX });
  const found = tasks.filter(({ id }) => id.startsWith(given));
  if (found.length === 1) return found[0]!;
  if (found.length === 0) throw new UsageError(`there is no task '${given}'; 'whoa tasks' lists them`);
  const some = found.slice(0, SHOWN_MAX).map(({ id }) => id);
  throw new UsageError(`'${given}' begins ${found.length} ids, such as ${some.join(', ')}; write more of it`);
}

/**
 * Those whose worker has died: nobody renews the lease. Their store has the last word, because leases are measured by its
 * clock, and that of this machine may be ahead.
 */
export async function findLost(store: TaskStore, tasks: readonly TaskRecord[]): Promise<ReadonlySet<string>> {
  const now = Date.now();
  const silent = tasks.filter(
    ({ status, leaseUntil }) => !isFinal(status) && status !== 'init' && leaseUntil !== undefined && leaseUntil < now,
  );
  if (silent.length === 0) return new Set();
  const due = new Set(await store.due({ limit: LISTED_MAX }));
  return new Set(silent.map(({ id }) => id).filter((id) => due.has(id)));
}

export async function isLost(store: TaskStore, task: TaskRecord): Promise<boolean> {
  return (await findLost(store, [task])).has(task.id);
}
