import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { StoreClosedError } from '../../../errors.ts';
import { isLaidOut, layOut, qualify } from '../layout.ts';
import type { ShownHint } from '../notify/hints.ts';
import { connectAlone, describeServer, isOurOwn, type ServerOptions, settingsOf } from './connect.ts';
import { ConnectionLimit } from './connection-limit.ts';
import { loadDriver, type Pool, type PooledConnection, Sockets } from './driver.ts';
import { type Attempt, failureOf, isSound, isUnprepared, isWorthAnother } from './failures.ts';

export interface DatabaseOptions extends ServerOptions {
  readonly schema: string;
  readonly maxConnections: number;
  /** How many tasks may run at once, of a tenant and of an agent. */
  readonly caps: { readonly tenant: number | undefined; readonly agent: number | undefined };
}

/** A function of the schema `fn.`, and what it is given. There must be few different ones: each is kept prepared. */
export interface Question {
  /** The store's method, for errors. */
  readonly operation: string;
  readonly changes: boolean;
  readonly name: string;
  readonly values: readonly unknown[];
}

export interface Answer<T> {
  readonly answer: T;
  /** Whom to ring, now that it is committed. */
  readonly rings: readonly Ring[] | null;
}

/** Under which channel somebody listens, and for what. */
export type Ring = readonly [channel: string, hint: ShownHint];

interface Statement {
  readonly name: string;
  readonly text: string;
}

/** Making the tables may take longer than any statement. */
const SETUP_MS = 600_000;
/** After this time a question is asked again on another connection; twice as long for the next. */
const RETRY_MS = 50;
const MAX_ATTEMPTS = 4;

/**
 * A bounded pool of connections to one schema. Nothing is done before the first question. Nothing is left behind on a
 * connection that a pooler shares: settings end with the transaction, and statements are prepared only on connections of our own.
 */
export class Database implements AsyncDisposable {
  readonly #options: DatabaseOptions;
  /** What each transaction begins with. */
  readonly #entry: readonly (string | null)[];
  /** No more are asked at once than there are connections: to wait for one is not to wait for the server. */
  readonly #limit: ConnectionLimit;
  readonly #statements = new Map<string, Statement>();
  readonly #sockets = new Sockets();
  /** What is known of each connection: whether it is our own, and whether it was opened before something failed. */
  readonly #known = new WeakMap<PooledConnection, { readonly isOwn: boolean; readonly generation: number }>();
  #opening: Promise<Pool> | undefined;
  #isReady = false;
  #preparing: Promise<void> | undefined;
  #mayPrepare = true;
  /** Rises when connections turn out to lead nowhere: the others are as old and are replaced too. */
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

  /** Asks one thing in one round trip. What was certainly not done is asked again on another connection. */
  async ask<T>(question: Question): Promise<Answer<T>> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#askOnce<T>(question);
      } catch (error) {
        if (!(error instanceof Stale)) throw error;
        if (attempt >= MAX_ATTEMPTS) throw error.cause;
      }
      await wait(RETRY_MS * 2 ** (attempt - 1), undefined, { ref: true });
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
      const text = { text: statement.text, values: [...this.#entry, ...values] };
      const isPrepared = this.#mayPrepare && this.#known.get(connection)!.isOwn;
      attempt.sent = true;
      const { rows } = await connection.query<Answer<T>>(isPrepared ? { ...text, name: statement.name } : text);
      return rows[0]!;
    } catch (error) {
      failure = error;
      throw this.#judge(error, attempt);
    } finally {
      connection?.release(failure !== undefined && !isSound(failure));
      this.#limit.leave();
    }
  }

  /** Says what a failure means, and leaves every connection that is as old as one that leads nowhere. */
  #judge(error: unknown, attempt: Attempt): unknown {
    if (error instanceof StoreClosedError) return error;
    if (isUnprepared(error)) this.#mayPrepare = false;
    if (attempt.sent && !isSound(error)) this.#generation++;
    const meaning = failureOf(error, attempt);
    return isWorthAnother(error, attempt) ? new Stale(meaning) : meaning;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    const pool = await this.#opening?.catch(() => undefined);
    if (pool !== undefined) await this.#sockets.endWithin(() => pool.end());
  }

  /** Settings first, then the move, then whom to ring: Postgres computes them in this order. */
  #statement({ name, changes, values }: Pick<Question, 'name' | 'changes' | 'values'>): Statement {
    const known = this.#statements.get(name);
    if (known !== undefined) return known;
    const count = this.#entry.length;
    const parameters = values.map((_, index) => `$${index + count + 1}`).join(', ');
    const entry = this.#entry.map((_, index) => `$${index + 1}`).join(', ');
    const sql = `SELECT fn.${name}(${parameters}) AS answer${changes ? ', fn.rings() AS rings' : ''} FROM fn.enter(${entry})`;
    const text = qualify(sql, this.schema);
    // Named after what it says: whoever finds the name taken finds the same statement.
    const statement = { name: `whoa_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`, text };
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
        this.#known.set(connection, { isOwn: await isOurOwn(connection), generation: this.#generation });
        await this.#prepareSchema(connection);
        return connection;
      } catch (error) {
        connection.release(true);
        throw error;
      }
    }
  }

  /** Once for all connections. */
  #prepareSchema(connection: PooledConnection): Promise<void> {
    if (this.#isReady) return Promise.resolve();
    this.#preparing ??= this.#layOut(connection).finally(() => (this.#preparing = undefined));
    return this.#preparing;
  }

  async #layOut(connection: PooledConnection): Promise<void> {
    if (!(await isLaidOut(connection, this.schema))) {
      const settings = { operation: 'setup', query_timeout: SETUP_MS };
      const { connection: alone, sockets } = await connectAlone(this.#options, settings);
      try {
        await layOut(alone, this.schema);
      } finally {
        await sockets.endWithin(() => alone.end());
      }
    }
    this.#isReady = true;
  }

  async #open(): Promise<Pool> {
    try {
      const driver = await loadDriver();
      const max = this.#options.maxConnections;
      const pool = new driver.Pool({ ...settingsOf(this.#options, this.#sockets), max, allowExitOnIdle: true });
      // An idle connection that breaks is replaced when one is needed.
      pool.on('error', () => {});
      // One that breaks while it is used fails its question; an error without a listener would end the process.
      pool.on('connect', (connection) => connection.on('error', () => {}));
      return pool;
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
  }
}

/** A failure that another connection may mend. */
class Stale extends Error {
  constructor(meaning: unknown) {
    super('Another connection may work', { cause: meaning });
  }
}
