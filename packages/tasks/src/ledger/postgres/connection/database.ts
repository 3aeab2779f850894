import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { StoreClosedError } from '../../../errors.ts';
import type { StoredSettings } from '../../driver.ts';
import { adoptFeed, askAlone } from '../alone.ts';
import type { HintRow } from '../hints.ts';
import { createIndexes, findLayout, holdSettings, isUsable, layOut, qualify, type SchemaRef } from '../layout.ts';
import { connectDedicated, describeServer, isOurOwn, type ServerOptions, toConnectionSettings } from './connect.ts';
import { ConnectionLimit } from './connection-limit.ts';
import { type Connection, loadDriver, type Pool, type PooledConnection, Sockets } from './driver.ts';
import { type Attempt, isSound, isUnprepared, isWorthAnother, toStoreError } from './failures.ts';

export interface DatabaseOptions extends ServerOptions {
  readonly schema: string;
  readonly maxConnections: number;
  /** How many tasks of a tenant and of an agent may run at the same time. */
  readonly caps: { readonly tenant: number | undefined; readonly agent: number | undefined };
  /** What the client asks the store to hold. */
  readonly given: StoredSettings;
  /** Called with what the store holds, before the first query. */
  readonly onSettings: (held: StoredSettings) => void;
}

/** Arguments by the names that they have in the SQL files. */
export type NamedValues = Readonly<Record<string, unknown>>;

/** A function of the schema `fn.`, and its arguments. Keep the number of different ones small: each stays prepared. */
export interface Question {
  /** The store's method, for errors. */
  readonly operation: string;
  readonly changes: boolean;
  readonly name: string;
  readonly values: NamedValues;
}

export interface Answer<T> {
  readonly answer: T;
  /** Whom to notify after the commit. */
  readonly notifications: readonly Notification[];
}

interface Row<T> {
  readonly answer: T;
  /** JSON text. */
  readonly notifications?: string | null;
}

/** The inbox of a process that wants to know, and the hint for it. */
type Notification = readonly [inbox: string, hint: HintRow];

interface Statement {
  readonly name: string;
  readonly text: string;
  readonly parameters: readonly string[];
}

/** The timeout for creating the tables, which may take longer than any statement. */
const SETUP_MS = 600_000;
/** The pause before a query is retried on another connection. It doubles each time. */
const RETRY_DELAY_MS = 50;
const MAX_ATTEMPTS = 4;

/**
 * A bounded pool of connections to one schema. It connects on the first query. It leaves nothing behind on a connection
 * that a pooler shares: settings end with the transaction, and statements are prepared only on unshared connections.
 */
export class Database implements AsyncDisposable {
  readonly #options: DatabaseOptions;
  /** The settings at the start of each transaction. */
  readonly #entry: readonly (string | null)[];
  /** Limits queries to the number of connections: waiting for a connection is not waiting for the server. */
  readonly #limit: ConnectionLimit;
  readonly #statements = new Map<string, Statement>();
  readonly #sockets = new Sockets();
  /** For each connection: whether it is unshared, and whether it was opened before a failure. */
  readonly #known = new WeakMap<PooledConnection, { readonly isOwn: boolean; readonly generation: number }>();
  #opening: Promise<Pool> | undefined;
  #settingUp: Sockets | undefined;
  #isReady = false;
  #preparing: Promise<void> | undefined;
  #mayPrepare = true;
  /** Increases when connections turn out to be broken: all connections of that age are replaced. */
  #generation = 0;
  #closed = false;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    this.#limit = new ConnectionLimit(options.maxConnections, options.statementTimeoutMs);
    const { tenant, agent } = options.caps;
    this.#entry = [options.statementTimeoutMs, tenant, agent].map((value) => (value === undefined ? null : `${value}`));
  }

  get schema(): string {
    return this.#options.schema;
  }

  /** Runs one query in one round trip. A query that certainly had no effect is retried on another connection. */
  async ask<T>(question: Question): Promise<Answer<T>> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#askOnce<T>(question);
      } catch (error) {
        if (!(error instanceof Stale)) throw error;
        if (attempt >= MAX_ATTEMPTS) throw error.cause;
      }
      await wait(RETRY_DELAY_MS * 2 ** (attempt - 1), undefined, { ref: true });
    }
  }

  /**
   * Runs a function while no operation runs: those that are running end before, and the others wait. It gives up after a second,
   * because they wait behind it.
   */
  async askAlone<T>(call: string, values: readonly unknown[]): Promise<T> {
    await this.#limit.wait('feed');
    let connection: PooledConnection | undefined;
    let failure: unknown;
    try {
      connection = await this.#connect();
      return await askAlone<T>(connection, { schema: this.schema, call, values });
    } catch (error) {
      failure = error;
      const attempt = {
        operation: 'feed',
        changes: true,
        sent: connection !== undefined,
        server: describeServer(this.#options.url),
      };
      throw this.#toFailure(error, attempt);
    } finally {
      connection?.release(failure !== undefined);
      this.#limit.leave();
    }
  }

  async #askOnce<T>({ operation, changes, name, values }: Question): Promise<Answer<T>> {
    if (this.#closed) throw new StoreClosedError();
    const attempt = { operation, changes, sent: false, server: describeServer(this.#options.url) };
    let connection: PooledConnection | undefined;
    let failure: unknown;
    await this.#limit.wait(operation);
    try {
      connection = await this.#connect();
      const statement = this.#statement({ name, changes, values });
      const inOrder = statement.parameters.map((parameter) => toValue(values[parameter]));
      const text = { text: statement.text, values: [...this.#entry, ...inOrder] };
      const isPrepared = this.#mayPrepare && this.#known.get(connection)!.isOwn;
      attempt.sent = true;
      const { rows } = await connection.query<Row<T>>(isPrepared ? { ...text, name: statement.name } : text);
      const { answer, notifications } = rows[0]!;
      return { answer, notifications: notifications ? (JSON.parse(notifications) as Notification[]) : [] };
    } catch (error) {
      failure = error;
      throw this.#toFailure(error, attempt);
    } finally {
      connection?.release(failure !== undefined && !isSound(failure));
      this.#limit.leave();
    }
  }

  /** Converts an error, and drops every connection that is as old as a broken one. */
  #toFailure(error: unknown, attempt: Attempt): unknown {
    if (error instanceof StoreClosedError) return error;
    if (isUnprepared(error)) this.#mayPrepare = false;
    if (attempt.sent && !isSound(error)) this.#generation++;
    const meaning = toStoreError(error, attempt);
    return isWorthAnother(error, attempt) ? new Stale(meaning) : meaning;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#settingUp?.destroy();
    const pool = await this.#opening?.catch(() => undefined);
    if (pool !== undefined) await this.#sockets.endWithin(() => pool.end());
  }

  /** Settings first, then the operation, then whom to notify: Postgres evaluates them in this order. */
  #statement({ name, changes, values }: Pick<Question, 'name' | 'changes' | 'values'>): Statement {
    const known = this.#statements.get(name);
    if (known !== undefined) return known;
    const count = this.#entry.length;
    const parameters = Object.keys(values);
    const named = parameters.map((parameter, index) => `${parameter} => $${index + count + 1}`).join(', ');
    const entry = this.#entry.map((_, index) => `$${index + 1}`).join(', ');
    const sql = `SELECT fn.${name}(${named}) AS answer${changes ? ', fn.pending_notifications() AS notifications' : ''} FROM fn.enter(${entry})`;
    const text = qualify(sql, this.schema);
    // Named by its content: if the name is taken, it is the same statement.
    const statement = {
      name: `whoa_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`,
      text,
      parameters,
    };
    this.#statements.set(name, statement);
    return statement;
  }

  async #connect(): Promise<PooledConnection> {
    const pool = await (this.#opening ??= this.#open());
    for (;;) {
      const connection = await pool.connect();
      const known = this.#known.get(connection);
      if (known?.generation === this.#generation && this.#isReady) return connection;
      if (known !== undefined && known.generation < this.#generation) {
        connection.release(true);
        continue;
      }
      try {
        const isOwn = await isOurOwn(connection);
        await this.#prepareSchema(connection);
        // A shared connection is set up by each transaction.
        if (isOwn) await connection.query(qualify('SELECT fn.set_up($1, false)', this.schema), [this.#entry[0]]);
        this.#known.set(connection, { isOwn, generation: this.#generation });
        return connection;
      } catch (error) {
        connection.release(true);
        throw error;
      }
    }
  }

  /** Runs once for all connections. */
  #prepareSchema(connection: PooledConnection): Promise<void> {
    if (this.#isReady) return Promise.resolve();
    this.#preparing ??= this.#layOut(connection).finally(() => (this.#preparing = undefined));
    return this.#preparing;
  }

  async #layOut(connection: PooledConnection): Promise<void> {
    const { caps, url } = this.#options;
    const limits = (['tenant', 'agent'] as const).filter((of) => caps[of] !== undefined);
    const ref = { schema: this.schema, server: describeServer(url), limits };
    const found = await findLayout(connection, ref);
    if (!isUsable(found)) await this.#alone((alone) => layOut(alone, ref));
    // Not awaited: without it, counting what runs is only slower.
    else if (found.missing.some((one) => 'limit' in one)) this.#createIndexes(ref).catch(() => {});
    await adoptFeed(connection, this.schema);
    this.#options.onSettings(await holdSettings(connection, this.schema, this.#options.given));
    this.#isReady = true;
  }

  /** For limits that the store did not have before. One process does it. */
  #createIndexes(ref: SchemaRef): Promise<void> {
    return this.#alone(async (alone) => {
      const lock = 'SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS mine';
      // A pooler would keep the lock.
      const isShared = !(await isOurOwn(alone));
      const isMine =
        isShared || (await alone.query<{ mine: boolean }>(lock, [`whoa migrates ${ref.schema}`])).rows[0]!.mine;
      if (isMine) await createIndexes(alone, ref);
    });
  }

  /** Runs what takes longer than any statement on its own connection. */
  async #alone(work: (connection: Connection) => Promise<void>): Promise<void> {
    const settings = { operation: 'setup', query_timeout: SETUP_MS };
    const { connection, sockets } = await connectDedicated(this.#options, settings);
    this.#settingUp = sockets;
    if (this.#closed) sockets.destroy();
    try {
      await work(connection);
    } finally {
      await sockets.endWithin(() => connection.end());
    }
  }

  async #open(): Promise<Pool> {
    try {
      const driver = await loadDriver();
      const max = this.#options.maxConnections;
      const pool = new driver.Pool({
        ...toConnectionSettings(this.#options, this.#sockets),
        max,
        allowExitOnIdle: true,
      });
      // An idle connection that breaks is replaced when one is needed.
      pool.on('error', () => {});
      // A connection that breaks in use fails its query. Without a listener the error would end the process.
      pool.on('connect', (connection) => connection.on('error', () => {}));
      return pool;
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
  }
}

/** A function is called when the database is connected: then it is known what the store holds. */
function toValue(value: unknown): unknown {
  return typeof value === 'function' ? (value as () => unknown)() : value;
}

/** A failure that another connection may not have. */
class Stale extends Error {
  constructor(meaning: unknown) {
    super('Another connection may work', { cause: meaning });
  }
}
