import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { StoreBusyError } from '../../errors.ts';
import { SCHEMA, SCHEMA_VERSION, UPGRADE } from './schema.ts';

/** SQLite waits this long inside a call, where nothing else of the process can run; then we wait outside. */
const WAIT_INSIDE_MS = 5;
const WAIT_OPENING_MS = 10_000;
/** How long a transaction may wait for other processes before it gives up. */
const BUSY_MS = 10_000;
const SQLITE_BUSY = 5;

export type Row = Record<string, unknown>;
export type Value = SQLInputValue;

/** The one place that knows `node:sqlite`. */
export class Database {
  readonly #sqlite: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string, options: { synchronous: 'NORMAL' | 'FULL' }) {
    // Ask for it late: merely importing it makes Node 22 print a warning.
    const sqlite = process.getBuiltinModule('node:sqlite');
    this.#sqlite = new sqlite.DatabaseSync(path, { timeout: WAIT_OPENING_MS });
    this.#sqlite.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${options.synchronous}`);
    this.#sqlite.exec('BEGIN IMMEDIATE');
    const found = Number(this.get('PRAGMA user_version')?.['user_version']);
    if (found > SCHEMA_VERSION) {
      this.#sqlite.exec('ROLLBACK');
      this.close();
      throw new Error(
        `${path} was written by a newer version (${found}, this one knows ${SCHEMA_VERSION}); update Whoa`,
      );
    }
    const upgrade = found > 0 && found < SCHEMA_VERSION ? UPGRADE : '';
    this.#sqlite.exec(`${SCHEMA}; ${upgrade}; PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT`);
    this.#sqlite.exec(`PRAGMA busy_timeout = ${WAIT_INSIDE_MS}`);
  }

  /** Answers the number of the row that was inserted, if one was. */
  run(sql: string, values: readonly Value[] = []): number {
    return Number(this.#statement(sql).run(...values).lastInsertRowid);
  }

  get(sql: string, values: readonly Value[] = []): Row | undefined {
    return this.#statement(sql).get(...values);
  }

  all(sql: string, values: readonly Value[] = []): Row[] {
    return this.#statement(sql).all(...values);
  }

  /** Runs work in a transaction, all or nothing. */
  write<T>(work: () => T): Promise<T> {
    return this.#patiently(() => this.#transact(work));
  }

  /** Runs reads. Each sees one moment; they wait only while the file is repaired after a process was killed. */
  read<T>(work: () => T): Promise<T> {
    return this.#patiently(work);
  }

  close(): void {
    this.#statements.clear();
    this.#sqlite.close();
  }

  /** Waits for other processes without blocking this one. */
  async #patiently<T>(work: () => T): Promise<T> {
    const until = performance.now() + BUSY_MS;
    for (;;) {
      try {
        return work();
      } catch (error) {
        if (!isBusy(error)) throw error;
        if (performance.now() > until) {
          throw new StoreBusyError(`Other processes kept the database for ${BUSY_MS} ms; is one of them stopped?`, {
            cause: error,
          });
        }
      }
      await new Promise((resolve) => setTimeout(resolve, 1 + Math.random() * 9));
    }
  }

  #transact<T>(work: () => T): T {
    this.#statement('BEGIN IMMEDIATE').run();
    try {
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

/** Whether another process was in the way, and it is worth trying again. */
export function isBusy(error: unknown): boolean {
  const code = (error as { errcode?: number }).errcode;
  // The low byte is the kind; the rest says which sort of busy.
  return code !== undefined && (code & 0xff) === SQLITE_BUSY;
}
