import { type Clock, systemClock, type World } from '@whoa/core/embed';
import type { Hint, TaskStore, WatchFilter } from '../store.ts';
import type { StoreOptions } from '../store-options.ts';
import { createCheckedStore } from './checked/checked-store.ts';
import type { StoredSettings } from './driver.ts';
import { createLocalDriver, type Engine } from './local.ts';
import { Database, isBusy } from './sqlite/database.ts';
import { getDefaultPath, prepareFile } from './sqlite/database-file.ts';
import { ChangeNotifier } from './sqlite/notifier.ts';
import { changesAfter, createTables, lastChange, MAX_CHANGES, type SqliteTables } from './sqlite/tables.ts';
import { createStoreRules, toRetention } from './store-rules.ts';
import { Watchers } from './watchers.ts';

export interface SqliteStoreOptions extends Omit<StoreOptions, 'shards'> {
  /**
   * The database file. Defaults to a file in the user's state folder. Don't use a folder that other users can write to.
   */
  readonly file?: string;
  /**
   * `process`: survives a crash of any process. `power`: also survives a power cut, but flushes the disk on each write.
   */
  readonly durability?: 'process' | 'power';
  /** How often watchers poll, in case the change notifier missed a change. */
  readonly pollIntervalMs?: number;
  readonly world?: World;
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
  readonly tables: SqliteTables;
  readonly now: () => number;
  readonly #database: Database;
  readonly #notifier: ChangeNotifier;
  readonly #watchers = new Watchers();
  readonly #clock: Clock;
  readonly #pollIntervalMs: number;
  #poll: Disposable | undefined;
  #listening: Promise<void> | undefined;
  #heard = 0;
  #told = 0;

  constructor({
    file = getDefaultPath(),
    durability = 'process',
    pollIntervalMs = POLL_MS,
    world,
  }: SqliteStoreOptions) {
    prepareFile(file);
    const synchronous = durability === 'power' ? 'FULL' : 'NORMAL';
    this.#database = new Database(file, { synchronous });
    try {
      this.#notifier = new ChangeNotifier(`${file}-bell`, file);
    } catch (error) {
      this.#database.close();
      throw error;
    }
    this.tables = createTables(this.#database);
    this.#clock = world?.clock ?? systemClock;
    this.#pollIntervalMs = pollIntervalMs;
    // Use the wall clock, which all processes of a machine share. A monotonic clock starts again in each process.
    this.now = world === undefined ? () => Date.now() : () => world.clock.now();
  }

  holdSettings(given: StoredSettings): StoredSettings {
    return this.#database.holdSettings(given);
  }

  async transact<T>(work: () => T): Promise<T> {
    const { answer, hints, first } = await this.#database.write(() => {
      const told = this.tables.begin();
      const done = work();
      if (told.hints.length > 0) this.#trimChanges(told.hints.length);
      return { answer: done, hints: told.hints, first: told.last - told.hints.length + 1 };
    });
    if (hints.length > 0) this.#notifier.ring(first, hints);
    return answer;
  }

  query<T>(work: () => T): Promise<T> {
    return this.#database.read(() => {
      this.tables.begin();
      return work();
    });
  }

  async watch(filter: WatchFilter, listener: (hint: Hint) => void): Promise<AsyncDisposable> {
    const watcher = this.#watchers.add(filter, listener);
    const leave = async (): Promise<void> => {
      await watcher[Symbol.asyncDispose]();
      if (this.#watchers.size === 0) this.#stopListening();
    };
    try {
      await (this.#listening ??= this.#startListening());
    } catch (error) {
      await leave();
      throw error;
    }
    return { [Symbol.asyncDispose]: leave };
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#watchers.clear();
    this.#stopListening();
    this.#notifier[Symbol.dispose]();
    this.#database.close();
    return Promise.resolve();
  }

  #trimChanges(told: number): void {
    this.#told += told;
    if (this.#told < MAX_CHANGES / 10) return;
    this.#told = 0;
    this.#database.run('DELETE FROM changes WHERE number <= (SELECT max(number) FROM changes) - ?', [MAX_CHANGES]);
  }

  /** Handles a ring. If the ring contains the next change, the database need not be read. */
  #hear(): void {
    const ring = this.#notifier.readLast();
    const next = this.#heard + 1;
    if (ring?.first !== next) {
      const isOld = ring !== undefined && ring.first + ring.hints.length <= next;
      if (!isOld) this.#listen();
      return;
    }
    this.#heard += ring.hints.length;
    for (const hint of ring.hints) this.#watchers.tell(hint);
  }

  /** Notifies watchers of the changes since the last notification. */
  #listen(): void {
    try {
      if (this.#watchers.size > 0) this.#tellChanges();
    } catch (error) {
      // Another process holds the lock; the next ring or poll finds the same changes again.
      if (!isBusy(error)) throw error;
    }
  }

  #tellChanges(): void {
    for (;;) {
      const { hints, last, missed, more } = changesAfter(this.#database, this.#heard);
      this.#heard = last;
      if (missed) this.#watchers.tell({ type: 'resync' });
      for (const hint of hints) this.#watchers.tell(hint);
      if (!more) return;
    }
  }

  #pollAgain(): void {
    this.#poll?.[Symbol.dispose]();
    this.#poll = this.#clock.setTimer(
      this.#pollIntervalMs,
      () => {
        this.#listen();
        this.#pollAgain();
      },
      { keepAlive: false },
    );
  }

  async #startListening(): Promise<void> {
    this.#heard = await this.#database.read(() => lastChange(this.#database));
    // All watchers may have left in the meantime.
    if (this.#watchers.size === 0) return;
    this.#notifier.listen(() => this.#hear());
    this.#pollAgain();
  }

  #stopListening(): void {
    this.#listening = undefined;
    this.#notifier.silence();
    this.#poll?.[Symbol.dispose]();
    this.#poll = undefined;
  }
}
