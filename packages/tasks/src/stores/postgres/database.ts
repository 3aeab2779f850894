import type { Client } from 'pg';
import { StoreClosedError } from '../../errors.ts';
import { breakOff, type Connection, endWithin, loadDriver, type Pool, type PooledConnection } from './driver.ts';
import { type Attempt, failureOf, isSound } from './failures.ts';
import { migrate, qualifierOf } from './migrations.ts';

export interface DatabaseOptions {
  readonly url: string | undefined;
  readonly schema: string;
  readonly connectionsMax: number;
  readonly connectTimeoutMs: number;
  readonly statementTimeoutMs: number;
}

/** What is asked. */
export interface Question extends Pick<Attempt, 'operation' | 'changes'> {
  /** `whoa.` in it stands for the schema. There must be few different ones: each is kept prepared on each connection. */
  readonly sql: string;
  readonly values: readonly unknown[];
}

/** A server that is stopped cannot time its statements out: stop waiting this much later. */
const ANSWER_MARGIN_MS = 1_000;

/**
 * Makes a connection one that the moves can rely on, whatever the role's defaults: each statement sees what was committed
 * before it, and what was acknowledged is on disk. Every row is found through an index: a plan that was made while a table
 * was empty must not read all of it once it is full. One plan serves every value, so none is made anew for each question.
 */
const PREPARE = `
SELECT set_config('statement_timeout', $1, false), set_config('idle_in_transaction_session_timeout', $1, false),
  set_config('default_transaction_isolation', 'read committed', false),
  set_config('enable_seqscan', 'off', false), set_config('plan_cache_mode', 'force_generic_plan', false),
  set_config('jit', 'off', false),
  set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), false)
`;

/** A bounded pool of connections to one schema. Nothing is done before the first question. */
export class Database implements AsyncDisposable {
  readonly qualifier: string;
  readonly #options: DatabaseOptions;
  readonly #statements = new Map<string, { readonly name: string; readonly text: string }>();
  readonly #connections = new Set<Connection>();
  readonly #prepared = new WeakSet<PooledConnection>();
  #opening: Promise<Pool> | undefined;
  #migrated = false;
  #closed = false;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    this.qualifier = qualifierOf(options.schema);
  }

  /** Asks one thing in one round trip. */
  async ask<Row extends object>({ operation, changes, sql, values }: Question): Promise<readonly Row[]> {
    if (this.#closed) throw new StoreClosedError();
    const attempt = { operation, changes, sent: false };
    let connection: PooledConnection | undefined;
    let failure: unknown;
    try {
      connection = await this.#connect();
      attempt.sent = true;
      const { rows } = await connection.query<Row>({ ...this.#statement(sql), values: [...values] });
      return rows;
    } catch (error) {
      failure = error;
      throw failureOf(error, attempt);
    } finally {
      connection?.release(failure !== undefined && !isSound(failure));
    }
  }

  /** A connection of its own, outside the pool; the caller ends it. */
  async connectAlone(): Promise<Client> {
    if (this.#closed) throw new StoreClosedError();
    const { Client: Alone } = await loadDriver();
    const connection = new Alone({ ...this.#settings(), application_name: 'whoa listens' });
    // Listen before it connects: an error that nobody hears would end the process.
    connection.on('error', () => {});
    try {
      await connection.connect();
      await this.#prepare(connection);
    } catch (error) {
      breakOff(connection);
      throw failureOf(error, { operation: 'watch', sent: false, changes: false });
    }
    return connection;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    const pool = await this.#opening?.catch(() => undefined);
    if (pool !== undefined)
      await endWithin(
        () => pool.end(),
        () => this.#connections,
      );
  }

  #statement(sql: string): { readonly name: string; readonly text: string } {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = { name: `whoa_${this.#statements.size}`, text: sql.replaceAll('whoa.', this.qualifier) };
    this.#statements.set(sql, statement);
    return statement;
  }

  async #connect(): Promise<PooledConnection> {
    const pool = await (this.#opening ??= this.#open());
    const connection = await pool.connect();
    try {
      if (!this.#prepared.has(connection)) {
        await this.#prepare(connection);
        this.#prepared.add(connection);
      }
      if (!this.#migrated) {
        await migrate(connection, this.#options.schema);
        this.#migrated = true;
      }
      return connection;
    } catch (error) {
      connection.release(true);
      throw error;
    }
  }

  async #prepare(connection: Connection): Promise<void> {
    await connection.query(PREPARE, [`${this.#options.statementTimeoutMs}`]);
  }

  async #open(): Promise<Pool> {
    try {
      const driver = await loadDriver();
      const max = this.#options.connectionsMax;
      const pool = new driver.Pool({ ...this.#settings(), max, allowExitOnIdle: true });
      // An idle connection that breaks is replaced when one is needed.
      pool.on('error', () => {});
      pool.on('connect', (connection) => {
        this.#connections.add(connection);
        // One that breaks while it is used fails its question; an error that nobody hears would end the process.
        connection.on('error', () => {});
      });
      pool.on('remove', (connection) => this.#connections.delete(connection));
      return pool;
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
  }

  #settings(): Record<string, unknown> {
    const { url, connectTimeoutMs, statementTimeoutMs } = this.#options;
    return {
      ...(url !== undefined && { connectionString: url }),
      application_name: 'whoa',
      keepAlive: true,
      connectionTimeoutMillis: connectTimeoutMs,
      query_timeout: statementTimeoutMs + ANSWER_MARGIN_MS,
    };
  }
}
