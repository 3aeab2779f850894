import type { World } from '@whoa/core/embed';
import { FileBus } from '../bus/file-bus.ts';
import { ChangeNotifier } from '../bus/notifier.ts';
import { openBus } from '../bus/open-bus.ts';
import type { WordSource } from '../delivery/worker-store.ts';
import type { Hint, TaskStore, WatchFilter } from '../store.ts';
import { createCheckedStore } from './checked/checked-store.ts';
import type { StoredSettings } from './driver.ts';
import { createLocalDriver, type Engine } from './local.ts';
import { Database } from './sqlite/database.ts';
import { getDefaultPath, prepareFile } from './sqlite/database-file.ts';
import { SqliteInterests } from './sqlite/interests.ts';
import { createTables, type SqliteTables } from './sqlite/tables.ts';
import type { SharedStoreOptions, StoreOptions } from './store-options.ts';
import { createStoreRules, toRetention } from './store-rules.ts';

export interface SqliteStoreOptions extends StoreOptions, SharedStoreOptions {
  /**
   * The database file. Defaults to a file in the user's state folder. Don't use a folder that other users can write to.
   */
  readonly file?: string | undefined;
  /**
   * `process`: survives a crash of any process. `power`: also survives a power cut, but flushes the disk on each write.
   */
  readonly durability?: 'process' | 'power' | undefined;
  /** How often the file of the bus is read, in case its watch missed a message. */
  readonly pollIntervalMs?: number | undefined;
  readonly world?: World | undefined;
}

const POLL_MS = 1_000;

/**
 * Creates a store in a file, for the processes of one machine.
 *
 * @returns The store.
 * @throws RangeError when an option is invalid; {@link StoreSetupError}, from its methods, when the file is not a task
 * database.
 */
export function createSqliteStore(options: SqliteStoreOptions = {}): TaskStore {
  const rules = createStoreRules(options);
  const engine = new SqliteEngine(options);
  Object.assign(rules, toRetention(engine.holdSettings(rules.given)));
  return createCheckedStore(createLocalDriver(engine, rules), { rules, world: options.world });
}

class SqliteEngine implements Engine {
  readonly name = 'sqlite';
  readonly inbox: string;
  readonly tables: SqliteTables;
  readonly now: () => number;
  readonly #database: Database;
  readonly #interests: SqliteInterests;
  readonly #notifier: ChangeNotifier;

  constructor(options: SqliteStoreOptions) {
    const { file = getDefaultPath(), durability = 'process', pollIntervalMs = POLL_MS, world } = options;
    prepareFile(file);
    const synchronous = durability === 'power' ? 'FULL' : 'NORMAL';
    this.#database = new Database(file, { synchronous });
    this.#interests = new SqliteInterests(this.#database);
    try {
      const bus = openBus(options.bus, { kind: 'file', open: () => new FileBus(file, pollIntervalMs) });
      this.#notifier = new ChangeNotifier({ ...bus, interests: this.#interests });
      this.inbox = this.#notifier.inbox;
    } catch (error) {
      this.#database.close();
      throw error;
    }
    this.tables = createTables(this.#database, (task) => this.#interests.readers(task));
    // Use the wall clock, which all processes of a machine share. A monotonic clock starts again in each process.
    this.now = world === undefined ? () => Date.now() : () => world.clock.now();
  }

  holdSettings(given: StoredSettings): StoredSettings {
    return this.#database.holdSettings(given);
  }

  async transact<T>(work: () => T): Promise<T> {
    const { answer, wanted } = await this.#database.write(() => {
      const hints = this.tables.begin();
      const done = work();
      return { answer: done, wanted: this.#interests.find(hints) };
    });
    for (const [inbox, hint] of wanted) this.#notifier.notify(inbox, hint);
    return answer;
  }

  query<T>(work: () => T): Promise<T> {
    return this.#database.read(() => {
      this.tables.begin();
      return work();
    });
  }

  watch(filter: WatchFilter, listener: (hint: Hint) => void): Promise<AsyncDisposable> {
    return this.#notifier.watch(filter, listener);
  }

  show(words: WordSource): void {
    this.#notifier.show(words);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#notifier[Symbol.asyncDispose]();
    this.#database.close();
  }
}
