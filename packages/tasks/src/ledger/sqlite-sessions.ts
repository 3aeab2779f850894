import { StoreClosedError } from '../errors.ts';
import { checkLimit, checkName } from './checked/checks.ts';
import { Database, type Row } from './sqlite/database.ts';
import { getDefaultPath, prepareFile } from './sqlite/database-file.ts';

/** The fields of a session that the store reads. All other fields are stored unchanged; they must be JSON. */
export interface StoredSession {
  readonly id: string;
  readonly cwd: string;
  /** Milliseconds since the epoch. */
  readonly updatedAt: number;
  readonly messages: readonly unknown[];
}

interface SessionsFilter {
  readonly cwd?: string;
  readonly limit?: number;
  /** `next` of the previous page. */
  readonly cursor?: string;
}

/** Stores sessions in the file of the tasks. Several processes may use it; the last save of a session wins. */
export interface SqliteSessions<Session extends StoredSession> extends AsyncDisposable {
  load(id: string): Promise<Session | undefined>;
  save(session: Session): Promise<void>;
  /** Lists sessions, latest first, without their messages. */
  list(
    filter?: SessionsFilter,
  ): Promise<{ readonly sessions: readonly Omit<Session, 'messages'>[]; readonly next?: string }>;
  remove(id: string): Promise<void>;
}

const LIST_LIMIT = 50;

const SAVE = `
INSERT INTO sessions (id, cwd, updatedAt, head, messages) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET cwd = excluded.cwd, updatedAt = excluded.updatedAt, head = excluded.head,
  messages = excluded.messages
`;

/**
 * Opens the sessions in the file of a SQLite store. `file` defaults to that of `createSqliteStore`.
 *
 * @returns The sessions. Dispose them to close the file.
 */
export function createSqliteSessions<Session extends StoredSession>({
  file = getDefaultPath(),
}: {
  readonly file?: string;
} = {}): SqliteSessions<Session> {
  prepareFile(file);
  return new Sessions(new Database(file, { synchronous: 'NORMAL' }));
}

class Sessions<Session extends StoredSession> implements SqliteSessions<Session> {
  readonly #database: Database;
  /** The latest save of each session that is being saved. */
  readonly #saving = new Map<string, object>();
  #closed = false;

  constructor(database: Database) {
    this.#database = database;
  }

  async load(id: string): Promise<Session | undefined> {
    const row = await this.#read(() => this.#database.get('SELECT head, messages FROM sessions WHERE id = ?', [id]));
    if (row === undefined) return undefined;
    return { ...toSummary(row), messages: JSON.parse(row['messages'] as string) as unknown[] } as unknown as Session;
  }

  async save(session: Session): Promise<void> {
    checkName('id', session.id);
    const { messages, ...head } = session;
    const { id, cwd, updatedAt } = session;
    const values = [id, cwd, updatedAt, JSON.stringify(head), JSON.stringify(messages)];
    const own = {};
    this.#saving.set(id, own);
    try {
      await this.#write(() => {
        // Skip an outdated save: while it waited for other processes, a later one may have been written.
        if (this.#saving.get(id) === own) this.#database.run(SAVE, values);
      });
    } finally {
      if (this.#saving.get(id) === own) this.#saving.delete(id);
    }
  }

  async list({ cwd, cursor, limit = LIST_LIMIT }: SessionsFilter = {}): ReturnType<SqliteSessions<Session>['list']> {
    checkLimit('limit', limit);
    const { updatedAt, id } = cursor === undefined ? { updatedAt: Infinity, id: '' } : parseCursor(cursor);
    const [where, values] = cwd === undefined ? ['', []] : ['cwd = ? AND ', [cwd]];
    const sql = `SELECT id, updatedAt, head FROM sessions WHERE ${where}(updatedAt, id) < (?, ?) ORDER BY updatedAt DESC, id DESC LIMIT ?`;
    const rows = await this.#read(() => this.#database.all(sql, [...values, updatedAt, id, limit + 1]));
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    const sessions = page.map((row) => toSummary<Session>(row));
    if (rows.length <= limit || last === undefined) return { sessions };
    return { sessions, next: `${last['updatedAt'] as number}/${last['id'] as string}` };
  }

  async remove(id: string): Promise<void> {
    // A pending save must not bring it back.
    this.#saving.delete(id);
    await this.#write(() => this.#database.run('DELETE FROM sessions WHERE id = ?', [id]));
  }

  [Symbol.asyncDispose](): Promise<void> {
    if (!this.#closed) this.#database.close();
    this.#closed = true;
    return Promise.resolve();
  }

  #read<T>(work: () => T): Promise<T> {
    return this.#closed ? Promise.reject(new StoreClosedError()) : this.#database.read(work);
  }

  #write<T>(work: () => T): Promise<T> {
    return this.#closed ? Promise.reject(new StoreClosedError()) : this.#database.write(work);
  }
}

function toSummary<Session>(row: Row): Omit<Session, 'messages'> {
  return JSON.parse(row['head'] as string) as Omit<Session, 'messages'>;
}

function parseCursor(cursor: string): { updatedAt: number; id: string } {
  const [, updatedAt, id] = /^(-?\d+(?:\.\d+)?)\/(.*)$/s.exec(cursor) ?? [];
  if (updatedAt === undefined || id === undefined)
    throw new RangeError('cursor: expected the `next` of a previous page');
  return { updatedAt: Number(updatedAt), id };
}
