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
  #lastReceived = 0;
  #lastNotified = 0;

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
      const lastNotified = this.tables.begin();
      const done = work();
      if (lastNotified.hints.length > 0) this.#trimChanges(lastNotified.hints.length);
      return { answer: done, hints: lastNotified.hints, first: lastNotified.last - lastNotified.hints.length + 1 };
    });
    if (hints.length > 0) this.#notifier.notify(first, hints);
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

  #trimChanges(lastNotified: number): void {
    this.#lastNotified += lastNotified;
    if (this.#lastNotified < MAX_CHANGES / 10) return;
    this.#lastNotified = 0;
    this.#database.run('DELETE FROM changes WHERE number <= (SELECT max(number) FROM changes) - ?', [MAX_CHANGES]);
  }

  /** Handles a notification. If it contains the next change, the database need not be read. */
  #onNotification(): void {
    const last = this.#notifier.readLast();
    const next = this.#lastReceived + 1;
    if (last?.first !== next) {
      const isOld = last !== undefined && last.first + last.hints.length <= next;
      if (!isOld) this.#listen();
      return;
    }
    this.#lastReceived += last.hints.length;
    for (const hint of last.hints) this.#watchers.notify(hint);
  }

  /** Notifies watchers of the changes since the last notification. */
  #listen(): void {
    try {
      if (this.#watchers.size > 0) this.#notifyChanges();
    } catch (error) {
      // Another process holds the lock; the next notification or poll finds the same changes again.
      if (!isBusy(error)) throw error;
    }
  }

  #notifyChanges(): void {
    for (;;) {
      const { hints, last, missed, more } = changesAfter(this.#database, this.#lastReceived);
      this.#lastReceived = last;
      if (missed) this.#watchers.notify({ type: 'resync' });
      for (const hint of hints) this.#watchers.notify(hint);
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
    this.#lastReceived = await this.#database.read(() => lastChange(this.#database));
    // All watchers may have left in the meantime.
    if (this.#watchers.size === 0) return;
    this.#notifier.listen(() => this.#onNotification());
    this.#pollAgain();
  }

  #stopListening(): void {
    this.#listening = undefined;
    this.#notifier.silence();
    this.#poll?.[Symbol.dispose]();
    this.#poll = undefined;
  }
}
