import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { StoreBusyError, StoreSetupError } from '../../errors.ts';
import type { StoredSettings } from '../driver.ts';
import type { Addition } from '../migration/addition.ts';
import { FORMAT, wrongFormat } from '../rules/format.ts';
import { ADDITIONS } from './additions.ts';
import { APPLICATION_ID, SCHEMA } from './schema.ts';

/** How long SQLite waits inside a call, which blocks this process. After that we wait outside. */
const WAIT_INSIDE_MS = 5;
const WAIT_OPENING_MS = 10_000;
/** How long a transaction may wait for other processes before it gives up. */
const BUSY_MS = 10_000;
const SQLITE_BUSY = 5;

export type Row = Record<string, unknown>;
export type Value = SQLInputValue;

interface DatabaseOptions {
  readonly synchronous: 'NORMAL' | 'FULL';
  /** Whether to create what is missing in the file. Defaults to true. */
  readonly canCreate?: boolean;
}

/** The only user of `node:sqlite`. */
export class Database {
  readonly #path: string;
  readonly #sqlite: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string, { synchronous, canCreate = true }: DatabaseOptions) {
    this.#path = path;
    // Load it late: merely importing it makes Node 22 print a warning.
    const sqlite = process.getBuiltinModule('node:sqlite');
    this.#sqlite = new sqlite.DatabaseSync(path, { timeout: WAIT_OPENING_MS });
    this.#sqlite.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}`);
    this.#sqlite.exec('BEGIN IMMEDIATE');
    const wrong = this.#wrongFormat();
    if (wrong !== undefined) {
      this.#sqlite.exec('ROLLBACK');
      this.close();
      throw new StoreSetupError(`${path} ${wrong}`);
    }
    if (canCreate) this.#create();
    this.#sqlite.exec('COMMIT');
    this.#sqlite.exec(`PRAGMA busy_timeout = ${WAIT_INSIDE_MS}`);
  }

  /** The format of the file; 0 before there are tables. */
  get format(): number {
    return Number(this.get('PRAGMA user_version')?.['user_version']);
  }

  /** What this version adds to the tables and the file does not have. */
  missing(): readonly Addition[] {
    const has = (sql: string, values: readonly Value[]): boolean => this.get(sql, values) !== undefined;
    return ADDITIONS.filter((one) =>
      'column' in one
        ? !has('SELECT 1 FROM pragma_table_info(?) WHERE name = ?', [one.table, one.column])
        : !has('SELECT 1 FROM sqlite_schema WHERE name = ?', ['index' in one ? one.index : one.table]),
    );
  }

  /** Returns the number of the inserted row, if any. */
  run(sql: string, values: readonly Value[] = []): number {
    return Number(this.#statement(sql).run(...values).lastInsertRowid);
  }

  get(sql: string, values: readonly Value[] = []): Row | undefined {
    return this.#statement(sql).get(...values);
  }

  all(sql: string, values: readonly Value[] = []): Row[] {
    return this.#statement(sql).all(...values);
  }

  /** Writes the settings that a client gives. Returns what the store holds then. */
  holdSettings(given: StoredSettings): StoredSettings {
    for (const [name, value] of Object.entries(given)) {
      this.run('INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)', [name, value]);
    }
    const held = this.all('SELECT name, value FROM settings').map((row) => [row['name'], row['value']]);
    return Object.fromEntries(held) as StoredSettings;
  }

  /** Returns a number that increases with each call. */
  nextTick(): number {
    return Number(this.get('UPDATE store_state SET tick = tick + 1 WHERE id = 0 RETURNING tick')?.['tick']);
  }

  /** Runs work in one transaction. */
  write<T>(work: () => T): Promise<T> {
    return this.#retryWhileBusy(() => this.#transact(work));
  }

  /** Runs reads. Each sees a consistent state. They wait only while the file is repaired after a process was killed. */
  read<T>(work: () => T): Promise<T> {
    return this.#retryWhileBusy(() => {
      const value = work();
      // Check afterwards: what was read before the format changed is still right.
      this.#checkFormat();
      return value;
    });
  }

  close(): void {
    this.#statements.clear();
    this.#sqlite.close();
  }

  /** Adds only what older versions do not notice, and keeps the format of a file that has one: they may use it too. */
  #create(): void {
    this.#sqlite.exec(`${SCHEMA}; INSERT OR IGNORE INTO store_state (id, tick, state) VALUES (0, 0, '')`);
    for (const one of this.missing()) {
      if ('columns' in one) this.#sqlite.exec(`CREATE TABLE ${one.table} (${one.columns})`);
      else if ('column' in one) this.#sqlite.exec(`ALTER TABLE ${one.table} ADD COLUMN ${one.column} ${one.type}`);
      else this.#sqlite.exec(`CREATE INDEX ${one.index} ON ${one.on}`);
    }
    if (this.format > 0) return;
    this.#sqlite.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${FORMAT}`);
  }

  /** Waits for other processes without blocking this one. */
  async #retryWhileBusy<T>(work: () => T): Promise<T> {
    const until = performance.now() + BUSY_MS;
    for (;;) {
      try {
        return work();
      } catch (error) {
        if (!isBusy(error)) throw unusable(error);
        if (performance.now() > until) {
          throw new StoreBusyError(`The database was locked for ${BUSY_MS} ms; check for a suspended process`, {
            cause: error,
          });
        }
      }
      await new Promise((resolve) => setTimeout(resolve, 1 + Math.random() * 9));
    }
  }

  #wrongFormat(): string | undefined {
    const { format } = this;
    const isOurs = this.get('PRAGMA application_id')?.['application_id'] === APPLICATION_ID;
    if (format === 0 && !isOurs) return undefined;
    if (!isOurs) return 'is from before the first release, or of another program; move it away';
    return wrongFormat(format);
  }

  #checkFormat(): void {
    const wrong = this.#wrongFormat();
    if (wrong !== undefined) throw new StoreSetupError(`${this.#path} ${wrong}`);
  }

  #transact<T>(work: () => T): T {
    this.#statement('BEGIN IMMEDIATE').run();
    try {
      // Check inside the transaction: another process may have changed the format since this one opened the file.
      this.#checkFormat();
      const value = work();
      this.#statement('COMMIT').run();
      return value;
    } catch (error) {
      if (this.#sqlite.isTransaction) this.#statement('ROLLBACK').run();
      throw error;
    }
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) this.#statements.set(sql, (statement = this.#sqlite.prepare(sql)));
    return statement;
  }
}

/** Failures of the operating system: nothing was changed, and a retry may succeed later. */
const REFUSED: Readonly<Record<number, string>> = {
  8: 'it cannot be written to; check its permissions',
  10: 'the disk failed; check it',
  13: 'the disk is full; free some space',
};

function unusable(error: unknown): unknown {
  const { errcode = 0 } = error as { errcode?: number };
  const why = REFUSED[errcode & 0xff];
  if (why === undefined) return error;
  return new StoreBusyError(`The database could not be changed: ${why}, then try again. Nothing was changed`, {
    cause: error,
  });
}

/** Returns whether another process held the lock, so that a retry makes sense. */
function isBusy(error: unknown): boolean {
  const code = (error as { errcode?: number }).errcode;
  // The low byte is the error; the rest says which kind of busy.
  return code !== undefined && (code & 0xff) === SQLITE_BUSY;
}

/** The record in a row. */
export function parseRecord<T>(row: Row | undefined): T | undefined {
  return row === undefined ? undefined : (JSON.parse(row['record'] as string) as T);
}
