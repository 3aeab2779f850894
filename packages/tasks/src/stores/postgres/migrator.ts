import { setTimeout as wait } from 'node:timers/promises';
import { StoreBusyError } from '../../errors.ts';
import {
  type Migrator,
  type MigratorState,
  type OlderWorkers,
  PART_ROWS,
  type Part,
  SEEN_MS,
} from '../../migration/migrator.ts';
import {
  checkSession,
  connectAlone,
  describeServer,
  type LoneConnection,
  type ServerOptions,
} from './connection/connect.ts';
import type { Connection } from './connection/driver.ts';
import { failureOf } from './connection/failures.ts';
import { FORMAT_CHANGES } from './format-changes.ts';
import { checkSchema, findLayout, layOut, qualify, type SchemaRef } from './layout.ts';
import { CONNECT_TIMEOUT_MS, type PostgresStoreOptions, STATEMENT_TIMEOUT_MS } from './options.ts';

/** How long a change waits for a lock: everything else waits behind it. Then it lets the others go first. */
const LOCK_MS = 500;
const RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;
const MAX_TRIES = 1_000;
/** A lock was not available in time, or two transactions waited for each other. */
const TRY_AGAIN = new Set(['55P03', '40P01', '40001']);

const HOLDING = `
SELECT DISTINCT s.worker FROM whoa.sessions s
WHERE s.expires_at > extract(epoch FROM now()) * 1000 AND s.format < $1
  AND EXISTS (SELECT FROM whoa.tasks t WHERE t.stage = 'held' AND t.session = s.id) ORDER BY s.worker
`;
const WAITING = `
SELECT DISTINCT w.worker FROM whoa.waiters w
WHERE w.at > extract(epoch FROM now()) * 1000 - ${SEEN_MS} AND w.format < $1 ORDER BY w.worker
`;
const BEGIN_STEP = "INSERT INTO whoa.steps (name, position, is_done) VALUES ($1, '', false) ON CONFLICT DO NOTHING";

/** Creates the migrator of a schema. It connects on first use, to the server itself if `url` is a pooler. */
export function createPostgresMigrator(options: PostgresStoreOptions): Migrator {
  const { schema = 'whoa', connectTimeoutMs = CONNECT_TIMEOUT_MS } = options;
  checkSchema(schema);
  const url = options.listenUrl ?? options.url;
  return new PostgresMigrator(schema, { url, connectTimeoutMs, statementTimeoutMs: STATEMENT_TIMEOUT_MS });
}

class PostgresMigrator implements Migrator {
  readonly store: string;
  readonly changes: typeof FORMAT_CHANGES = FORMAT_CHANGES;
  readonly #ref: SchemaRef;
  readonly #server: ServerOptions;
  #opening: Promise<LoneConnection> | undefined;

  constructor(schema: string, server: ServerOptions) {
    this.#ref = { schema, server: describeServer(server.url) };
    this.#server = server;
    this.store = `${this.#ref.server}, schema '${schema}'`;
  }

  state(): Promise<MigratorState | undefined> {
    return this.#use(async (connection) => {
      const { format } = await findLayout(connection, this.#ref);
      if (format === undefined) return undefined;
      const rows = await this.#query<{ name: string; is_done: boolean }>('SELECT name, is_done FROM whoa.steps');
      return { format, steps: new Map(rows.map(({ name, is_done: isDone }) => [name, isDone])) };
    });
  }

  async begin(): Promise<void> {
    const lock = 'SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS mine';
    const values = [`whoa migrates ${this.#ref.schema}`];
    const [row] = await this.#use(() => this.#query<{ mine: boolean }>(lock, values));
    if (!row!.mine) throw new StoreBusyError(`${this.store} is being migrated by another process; wait for it`);
    await this.#use(async (connection) => {
      if (!(await findLayout(connection, this.#ref)).isComplete) await layOut(connection, this.#ref);
    });
  }

  async runPart(name: string, signal: AbortSignal | undefined): Promise<Part> {
    const step = this.changes.flatMap(({ before, after }) => [...before, ...after]).find((one) => one.name === name)!;
    if ('index' in step) {
      try {
        return await this.#use(() => this.#createIndex(step, signal));
      } catch (error) {
        signal?.throwIfAborted();
        throw error;
      }
    }
    return this.#transact(async () => {
      await this.#query(BEGIN_STEP, [name]);
      const [found] = await this.#query<{ position: string; is_done: boolean }>(
        'SELECT position, is_done FROM whoa.steps WHERE name = $1 FOR UPDATE',
        [name],
      );
      if (found!.is_done) return { rows: 0, isDone: true };
      let filled: { position: string | null; rows: string | number } | undefined;
      if ('alter' in step) await this.#query(step.alter);
      else [filled] = await this.#query(step.fill, [found!.position, PART_ROWS]);
      const [position, rows] = [filled?.position ?? null, Number(filled?.rows ?? 0)];
      const noted =
        'UPDATE whoa.steps SET position = coalesce($2, position), is_done = $2::text IS NULL WHERE name = $1';
      await this.#query(noted, [name, position]);
      return { rows, isDone: position === null };
    }, signal);
  }

  olderWorkers(format: number): Promise<OlderWorkers> {
    return this.#use(async () => {
      const holding = await this.#workers(HOLDING, format);
      return { holding, waiting: await this.#workers(WAITING, format) };
    });
  }

  finish(format: number): Promise<readonly string[]> {
    return this.#transact(async () => {
      // Running operations end before; those that wait for the lock see the new format.
      await this.#query('LOCK TABLE whoa.layout IN ACCESS EXCLUSIVE MODE');
      const older = await this.#workers(HOLDING, format);
      if (older.length > 0) return older;
      const after = this.changes.find(({ to }) => to === format)?.after ?? [];
      for (const { name } of after) await this.#query(BEGIN_STEP, [name]);
      await this.#query('UPDATE whoa.layout SET format = greatest(format, $1)', [format]);
      return older;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const alone = await this.#opening?.catch(() => undefined);
    if (alone !== undefined) await alone.sockets.endWithin(() => alone.connection.end());
  }

  async #workers(sql: string, format: number): Promise<readonly string[]> {
    const rows = await this.#query<{ worker: string }>(sql, [format]);
    return rows.map(({ worker }) => worker);
  }

  /** Writers go on meanwhile. An index that was not completed is in nobody's use, and is created again. */
  async #createIndex(
    { name: step, index: { name, definition } }: { name: string; index: { name: string; definition: string } },
    signal: AbortSignal | undefined,
  ): Promise<Part> {
    const broken = `SELECT FROM pg_index i WHERE i.indexrelid = to_regclass($1) AND NOT i.indisvalid`;
    const done = new AbortController();
    // It waits for other transactions without blocking any, so it may wait for as long as it takes.
    await this.#query('SET lock_timeout = 0');
    await this.#query(BEGIN_STEP, [step]);
    const found = await this.#query(broken, [`"${this.#ref.schema}".${name}`]);
    if (found.length > 0) await this.#query(`DROP INDEX CONCURRENTLY IF EXISTS whoa.${name}`);
    // If the server cannot be asked to cancel it, it ends by itself.
    const cancelled = this.#cancelOnAbort(signal, done.signal).catch(() => {});
    try {
      await this.#query(`CREATE INDEX CONCURRENTLY IF NOT EXISTS ${name} ${definition}`);
    } finally {
      done.abort();
      await cancelled;
    }
    await this.#query('UPDATE whoa.steps SET is_done = true WHERE name = $1', [step]);
    return { rows: 0, isDone: true };
  }

  /** Ends the running statement on the server when `signal` aborts, until `done` does. */
  async #cancelOnAbort(signal: AbortSignal | undefined, done: AbortSignal): Promise<void> {
    if (signal === undefined) return;
    const [{ pid } = { pid: 0 }] = await this.#query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    const { promise, resolve } = Promise.withResolvers<void>();
    const leave = (): void => resolve();
    for (const one of [signal, done]) one.addEventListener('abort', leave, { once: true });
    if (!signal.aborted && !done.aborted) await promise;
    signal.removeEventListener('abort', leave);
    if (done.aborted) return;
    const other = await connectAlone(this.#server, { operation: 'migrate', application_name: 'whoa migrate' });
    try {
      await other.connection.query('SELECT pg_cancel_backend($1)', [pid]);
    } finally {
      await other.sockets.endWithin(() => other.connection.end());
    }
  }

  /** Runs work in a transaction that never makes others wait for long. */
  async #transact<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#use(async () => {
          await this.#query(`BEGIN; SET LOCAL lock_timeout = ${LOCK_MS}`);
          try {
            const result = await work();
            await this.#query('COMMIT');
            return result;
          } catch (error) {
            await this.#query('ROLLBACK');
            throw error;
          }
        });
      } catch (error) {
        const { cause = error } = error as { cause?: unknown };
        if (!TRY_AGAIN.has((cause as { code?: string }).code ?? '') || tries >= MAX_TRIES) throw error;
      }
      await wait(Math.min(RETRY_MS * tries, MAX_RETRY_MS), undefined, { signal });
    }
  }

  /** Runs work on the connection, and explains its failures. */
  async #use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const { connection } = await (this.#opening ??= this.#open());
    try {
      return await work(connection);
    } catch (error) {
      const { server } = this.#ref;
      throw failureOf(error, { operation: 'migrate', sent: true, changes: false, server });
    }
  }

  async #query<Row>(sql: string, values?: readonly unknown[]): Promise<Row[]> {
    const { connection } = await this.#opening!;
    const text = qualify(sql, this.#ref.schema);
    const { rows } = await connection.query<Row & object>(values === undefined ? text : { text, values: [...values] });
    return rows;
  }

  async #open(): Promise<LoneConnection> {
    const settings = { operation: 'migrate', application_name: 'whoa migrate', query_timeout: 0 };
    const alone = await connectAlone(this.#server, settings);
    try {
      await checkSession(this.#server, alone);
      // However long it takes.
      await alone.connection.query('SET statement_timeout = 0');
      return alone;
    } catch (error) {
      await alone.sockets.endWithin(() => alone.connection.end());
      throw error;
    }
  }
}
