import { existsSync } from 'node:fs';
import { type Migrator, type MigratorState, type OlderWorkers, type Part, SEEN_MS } from '../../migration/migrator.ts';
import type { Session } from '../../operations/tables.ts';
import type { SqliteStoreOptions } from '../sqlite.ts';
import { Database, recordOf } from './database.ts';
import { getDefaultPath, prepareFile } from './database-file.ts';
import { FORMAT_CHANGES } from './format-changes.ts';

const HOLDING = `
SELECT s.record FROM worker_sessions s
WHERE s.expiresAt > ? AND EXISTS (SELECT 1 FROM tasks t WHERE t.session = s.id AND t.stage = 'held')
`;
const BEGIN_STEP = "INSERT OR IGNORE INTO steps (name, position, isDone) VALUES (?, '', 0)";

/** Creates the migrator of a file. It opens the file on first use. */
export function createSqliteMigrator(options: SqliteStoreOptions): Migrator {
  return new SqliteMigrator(options);
}

class SqliteMigrator implements Migrator {
  readonly store: string;
  readonly changes: typeof FORMAT_CHANGES = FORMAT_CHANGES;
  readonly #synchronous: 'NORMAL' | 'FULL';
  /** The clock by which stores of the file set leases. */
  readonly #now: () => number;
  #database: Database | undefined;

  constructor({ file = getDefaultPath(), durability, world }: SqliteStoreOptions) {
    this.store = file;
    this.#synchronous = durability === 'power' ? 'FULL' : 'NORMAL';
    this.#now = world === undefined ? () => Date.now() : () => world.clock.now();
  }

  async state(): Promise<MigratorState | undefined> {
    if (!existsSync(this.store)) return undefined;
    const database = this.#open();
    return database.read(() => {
      const rows = database.all('SELECT name, isDone FROM steps');
      return {
        format: database.format,
        steps: new Map(rows.map((row) => [row['name'] as string, row['isDone'] === 1])),
      };
    });
  }

  begin(): Promise<void> {
    prepareFile(this.store);
    this.#open();
    return Promise.resolve();
  }

  runPart(name: string): Promise<Part> {
    const step = this.changes.flatMap(({ before, after }) => [...before, ...after]).find((one) => one.name === name)!;
    const database = this.#open();
    return database.write(() => {
      database.run(BEGIN_STEP, [name]);
      const found = database.get('SELECT position, isDone FROM steps WHERE name = ?', [name])!;
      if (found['isDone'] === 1) return { rows: 0, isDone: true };
      const { position, rows } = step.run(database, found['position'] as string);
      const isDone = position === undefined;
      const noted = 'UPDATE steps SET position = ?, isDone = ? WHERE name = ?';
      database.run(noted, [position ?? (found['position'] as string), Number(isDone), name]);
      return { rows, isDone };
    });
  }

  olderWorkers(format: number): Promise<OlderWorkers> {
    const database = this.#open();
    return database.read(() => olderWorkers(database, { format, now: this.#now() }));
  }

  finish(format: number): Promise<readonly string[]> {
    const database = this.#open();
    return database.write(() => {
      const { holding } = olderWorkers(database, { format, now: this.#now() });
      if (holding.length > 0) return holding;
      const after = this.changes.find(({ to }) => to === format)?.after ?? [];
      for (const { name } of after) database.run(BEGIN_STEP, [name]);
      if (database.format < format) database.run(`PRAGMA user_version = ${format}`);
      return holding;
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#database?.close();
    this.#database = undefined;
    return Promise.resolve();
  }

  #open(): Database {
    this.#database ??= new Database(this.store, { synchronous: this.#synchronous });
    return this.#database;
  }
}

function olderWorkers(
  database: Database,
  { format, now }: { readonly format: number; readonly now: number },
): OlderWorkers {
  const sessions = database
    .all(HOLDING, [now])
    .map((row) => recordOf<Session>(row)!)
    .filter((session) => session.format < format);
  const waiters = database.all('SELECT DISTINCT worker FROM waiters WHERE at > ? AND format < ?', [
    now - SEEN_MS,
    format,
  ]);
  return {
    holding: [...new Set(sessions.map(({ worker }) => worker))].toSorted(),
    waiting: waiters.map((row) => row['worker'] as string).toSorted(),
  };
}
