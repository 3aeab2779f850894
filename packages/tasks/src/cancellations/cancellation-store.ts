import { systemWorld, type World } from '@whoa/core/embed';
import { settings, worldRule } from '@whoa/core/internal';
import type { Bus } from '../bus/bus.ts';
import { StoreBusyError, StoreClosedError, StoreSetupError } from '../errors.ts';
import { checkName } from '../ledger/checked/checks.ts';
import type { FinalStatus } from '../ledger/rules/status.ts';
import { UnknownOutcomeError } from '../unknown-outcome.ts';
import type { Entries, Entry, Field } from './entries.ts';
import { createMemoryEntries } from './memory-entries.ts';
import { createPostgresEntries } from './postgres-entries.ts';
import { createRedisEntries } from './redis-entries.ts';
import { createSqliteEntries } from './sqlite-entries.ts';

type CancellationStatus = 'init' | 'running' | FinalStatus;
type EntryState = { readonly status: CancellationStatus; readonly reason?: string | undefined };

/** What a cancellation store knows about a task. */
interface CancellationEntry {
  readonly taskId: string;
  /** `cancelled` as soon as a cancel was asked for, and what `setStatus` reported at the end. */
  readonly status: CancellationStatus;
  readonly reason?: string;
}

/**
 * Status and cancels of tasks, by their ids, for programs that ask for cancels apart from the task store. It only asks: the
 * work stops when its runner, or your loop, reads it. Every call is safe to repeat.
 */
export interface CancellationStore extends AsyncDisposable {
  /** Adds a task; keeps a cancel that came first. The status defaults to `init`. */
  register(taskId: string, status?: CancellationStatus): Promise<CancellationEntry>;
  /** Sets the status. `success`, `failed` and `cancelled` end the task; the first end is kept. */
  setStatus(taskId: string, status: CancellationStatus, reason?: string): Promise<CancellationEntry>;
  /** Asks for a cancel, also before the task is registered. The first reason is kept. `too-late`: it had ended. */
  cancel(
    taskId: string,
    reason?: string,
  ): Promise<{ readonly result: 'set' | 'too-late'; readonly status: CancellationStatus }>;
  /** True from the moment a cancel was asked for, unless the task ended in another way. */
  isCancelled(taskId: string): Promise<boolean>;
  /** Returns what is known, until 7 days after the last write. */
  get(taskId: string): Promise<CancellationEntry | undefined>;
  /** Calls `listener` when a cancel is asked for. Calls may be missing or repeated: look with `isCancelled` too. */
  onCancel(listener: (taskId: string) => void): Disposable;
}

/** Where cancels are kept. */
export type CancellationStoreConfig = { readonly world?: World | undefined } & (
  | { readonly backend: 'memory' }
  | { readonly backend: 'sqlite'; readonly file: string }
  | { readonly backend: 'redis'; readonly url: string; readonly prefix?: string | undefined }
  | { readonly backend: 'postgres'; readonly url?: string | undefined; readonly table?: string | undefined }
);

const { nonEmptyText, oneOf, readSettings, required, rule } = settings;

const MAX_REASON = 1_000;
const UNREADABLE = 'The cancellations could not be read; check their server or file, then try again';
const STATUSES: readonly CancellationStatus[] = ['init', 'running', 'success', 'failed', 'cancelled'];
const FINAL: readonly CancellationStatus[] = ['success', 'failed', 'cancelled'];
const checkStatus = oneOf(...STATUSES);
const isText =
  (pattern: RegExp) =>
  (value: unknown): boolean =>
    typeof value === 'string' && pattern.test(value);
const BACKENDS = {
  memory: {},
  sqlite: { file: required(nonEmptyText) },
  redis: {
    url: required(nonEmptyText),
    prefix: rule("1 to 64 letters, digits, '_', '.', ':' or '-'", isText(/^[\w.:-]{1,64}$/)),
  },
  postgres: {
    url: nonEmptyText,
    table: rule("1 to 48 lower-case letters, digits or '_'", isText(/^[a-z_][a-z0-9_]{0,47}$/)),
  },
};

/**
 * Creates a store for cancels that programs ask for by a task's id. Pass it to `createRunner` as `cancellations`, or ask it in
 * your own loop.
 *
 * @returns The store. Dispose it to close its connections.
 * @throws {@link SettingsError} when the configuration is invalid.
 */
export function createCancellationStore(config: CancellationStoreConfig): CancellationStore {
  const backend = required(oneOf(...Object.keys(BACKENDS)));
  const named = readSettings<Pick<CancellationStoreConfig, 'backend'>>(config, { backend }, { allowUnknown: true });
  const checked = readSettings<CancellationStoreConfig>(config, {
    backend,
    world: worldRule,
    ...BACKENDS[named.backend],
  } as settings.Rules<CancellationStoreConfig>);
  return toStore(open(checked), checked.world ?? systemWorld);
}

function open(config: CancellationStoreConfig): Entries {
  // Processes share what is stored: a monotonic clock starts again in each process.
  const now = config.world === undefined ? () => Date.now() : () => config.world!.clock.now();
  if (config.backend === 'redis') return createRedisEntries(config);
  if (config.backend === 'postgres') return createPostgresEntries({ ...config, now });
  return config.backend === 'sqlite' ? createSqliteEntries({ ...config, now }) : createMemoryEntries(now);
}

function tell(listeners: ReadonlySet<(taskId: string) => void>, taskId: string): void {
  for (const listener of listeners) {
    try {
      listener(taskId);
    } catch (error) {
      process.emitWarning(new Error('A listener given to onCancel() failed', { cause: error }));
    }
  }
}

function toStore(entries: Entries, { clock }: World): CancellationStore {
  const listeners = new Set<(taskId: string) => void>();
  let isClosed = false;
  let bus: Bus | undefined;
  let reception: Promise<Disposable> | undefined;
  const openBus = (): Bus | undefined => (bus ??= entries.openBus?.());
  const read = async (taskId: string): Promise<CancellationEntry | undefined> => {
    checkId(taskId);
    if (isClosed) throw new StoreClosedError();
    try {
      const entry = await entries.read(taskId);
      return entry && toEntry(taskId, entry);
    } catch (error) {
      throw error instanceof StoreSetupError ? error : new StoreBusyError(UNREADABLE, { cause: error });
    }
  };
  const write = async (operation: string, taskId: string, [field, value]: [Field, string]): Promise<Entry> => {
    if (isClosed) throw new StoreClosedError();
    try {
      return await entries.write(taskId, field, value);
    } catch (error) {
      throw error instanceof StoreSetupError ? error : new UnknownOutcomeError(operation, { cause: error });
    }
  };
  const set = async (operation: string, taskId: string, state: EntryState): Promise<CancellationEntry> => {
    checkId(taskId);
    return toEntry(taskId, await write(operation, taskId, toField(state)));
  };
  return {
    register: (taskId, status = 'init') => set('register', taskId, { status }),
    setStatus: (taskId, status, reason) => set('setStatus', taskId, { status, reason }),
    async cancel(taskId, reason) {
      checkId(taskId);
      const asked = JSON.stringify({ at: clock.now(), reason: toReason(reason) });
      const entry = await write('cancel', taskId, ['cancel', asked]);
      const { status } = toEntry(taskId, entry);
      if (entry.ended !== undefined) return { result: 'too-late', status };
      tell(listeners, taskId);
      try {
        openBus()?.send(bus!.inbox, Buffer.from(taskId));
      } catch {
        // It is set, whether others hear of it now or when they look.
      }
      return { result: 'set', status };
    },
    isCancelled: async (taskId) => (await read(taskId))?.status === 'cancelled',
    get: read,
    onCancel(listener) {
      const own = (taskId: string): void => listener(taskId);
      reception ??= openBus()?.receive((message) => tell(listeners, Buffer.from(message).toString()));
      listeners.add(own);
      return { [Symbol.dispose]: () => void listeners.delete(own) };
    },
    async [Symbol.asyncDispose]() {
      if (isClosed) return;
      isClosed = true;
      listeners.clear();
      await bus?.[Symbol.asyncDispose]();
      await entries.close();
    },
  };
}

/** What a database cannot keep as it is would name another task. */
function checkId(taskId: string): void {
  checkName('taskId', taskId);
  if (taskId.includes('\0') || !taskId.isWellFormed())
    throw new TypeError('taskId: expected well-formed text without NUL');
}

/** The field that holds a status: the end has its own, which is written once. */
function toField({ status, reason }: EntryState): [Field, string] {
  checkStatus(status, 'status');
  if (!FINAL.includes(status)) return ['status', status];
  return ['ended', JSON.stringify({ status, reason: toReason(reason) })];
}

function toReason(reason: string | undefined): string | undefined {
  if (reason === undefined) return undefined;
  if (typeof reason !== 'string') throw settings.unexpected('reason', reason, 'a string');
  return reason.slice(0, MAX_REASON).toWellFormed();
}

/** The end counts most, then a cancel, then what was set. */
function toEntry(taskId: string, { status, cancel, ended }: Entry): CancellationEntry {
  const asked = cancel === undefined ? undefined : (JSON.parse(cancel) as { reason?: string });
  const end = ended === undefined ? undefined : (JSON.parse(ended) as Omit<CancellationEntry, 'taskId'>);
  const now = end?.status ?? (asked ? 'cancelled' : ((status ?? 'init') as CancellationStatus));
  const reason = end?.reason ?? (now === 'cancelled' ? asked?.reason : undefined);
  return { taskId, status: now, ...(reason !== undefined && { reason }) };
}
