import { createHash, randomUUID } from 'node:crypto';
import type { Clock } from '@whoa/core';
import type { Client } from 'pg';
import type { Hint } from '../../store.ts';
import type { Database } from './database.ts';
import { breakOff, endWithin, letGo, takeTurns } from './driver.ts';
import { PushedOrders } from './pushed-orders.ts';

export interface DoorbellOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly pollMs: number;
  readonly onHint: (hint: Hint) => void;
}

/** A broken connection is tried again after this time, twice as long each time, up to the second. */
const RETRY_MS = 20;
const RETRY_MS_MAX = 1_000;
const LISTEN_ATTEMPTS_MAX = 3;

/**
 * Hears what commits in the database, on one connection of its own. Postgres forgets notifications for those who are not
 * connected, so after every gap everybody is told to look at everything. Whether the bell works is tried every `pollMs`:
 * a ring of our own must have come back, or the connection is given up. Behind a pooler that drops notifications this makes
 * every poll a look at everything.
 */
export class Doorbell implements AsyncDisposable {
  readonly #options: DoorbellOptions;
  readonly #own = `whoa_bell_${randomUUID().replaceAll('-', '')}`;
  readonly #everything: string;
  readonly #listeners = new Map<string, number>();
  #connection: Client | undefined;
  #connecting: Promise<Client> | undefined;
  #heard = new Set<string>();
  #timer: Disposable | undefined;
  #waitsForRing = false;
  #gap = false;
  #failures = 0;

  constructor(options: DoorbellOptions) {
    this.#options = options;
    this.#everything = channelOf(options.database.qualifier, undefined);
  }

  /** Resolves when it listens. Rejects if the database cannot be reached. */
  async listen(channel: string): Promise<void> {
    this.#listeners.set(channel, (this.#listeners.get(channel) ?? 0) + 1);
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#hear(await this.#connect(), channel);
        return;
      } catch (error) {
        if (attempt < LISTEN_ATTEMPTS_MAX) continue;
        await this.leave(channel);
        throw error;
      }
    }
  }

  async leave(channel: string): Promise<void> {
    const left = (this.#listeners.get(channel) ?? 1) - 1;
    if (left > 0) {
      this.#listeners.set(channel, left);
      return;
    }
    this.#listeners.delete(channel);
    if (this.#listeners.size === 0) await this[Symbol.asyncDispose]();
    // One that breaks now is replaced by one that does not listen to it.
    else if (this.#heard.delete(channel)) await this.#connection?.query(`UNLISTEN ${channel}`).catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listeners.clear();
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    const connection = (await this.#connecting?.catch(() => undefined)) ?? this.#connection;
    this.#connection = undefined;
    this.#gap = false;
    if (connection !== undefined)
      await endWithin(
        () => connection.end(),
        () => [connection],
      );
  }

  #connect(): Promise<Client> {
    if (this.#connection !== undefined) return Promise.resolve(this.#connection);
    this.#connecting ??= this.#open().finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  async #open(): Promise<Client> {
    const connection = await this.#options.database.connectAlone();
    letGo(connection);
    takeTurns(connection);
    connection.on('end', () => this.#lose(connection));
    const { database, onHint } = this.#options;
    const orders = new PushedOrders(connection, { qualifier: database.qualifier, onHint });
    connection.on('notification', ({ channel, payload = '' }) => this.#ring(channel, payload, orders));
    this.#connection = connection;
    this.#heard = new Set();
    this.#waitsForRing = false;
    try {
      for (const channel of [this.#own, ...this.#listeners.keys()]) await this.#hear(connection, channel);
    } catch (error) {
      this.#giveUp(connection);
      throw error;
    }
    this.#failures = 0;
    this.#tryAgainIn(this.#options.pollMs);
    // Don't say so earlier: what happens between looking and listening would be missed.
    if (this.#gap) this.#options.onHint({ type: 'resync' });
    this.#gap = false;
    return connection;
  }

  async #hear(connection: Client, channel: string): Promise<void> {
    if (this.#heard.has(channel)) return;
    await connection.query(`LISTEN ${channel}`);
    if (this.#connection === connection) this.#heard.add(channel);
  }

  #giveUp(connection: Client): void {
    breakOff(connection);
    this.#lose(connection);
  }

  #lose(connection: Client): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    if (this.#listeners.size === 0) return;
    this.#gap = true;
    this.#tryAgainIn(this.#retryMs());
  }

  #retryMs(): number {
    return Math.min(RETRY_MS * 2 ** this.#failures++, RETRY_MS_MAX);
  }

  #tryAgainIn(ms: number): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = this.#options.clock.setTimer(ms, () => this.#try(), { keepAlive: false });
  }

  /** Rings our own bell, or connects again if the last ring was not heard. */
  #try(): void {
    const { pollMs, database } = this.#options;
    const connection = this.#connection;
    if (connection === undefined) {
      this.#connect().catch(() => this.#listeners.size > 0 && this.#tryAgainIn(this.#retryMs()));
      return;
    }
    if (this.#waitsForRing) {
      this.#giveUp(connection);
      return;
    }
    this.#waitsForRing = true;
    this.#tryAgainIn(pollMs);
    const sql = 'SELECT pg_notify($1, $2)';
    // Ring from another connection, as others do. If it cannot be done, the next try finds that it was not heard.
    database.ask({ operation: 'watch', changes: false, sql, values: [this.#own, ''] }).catch(() => {});
  }

  #ring(channel: string, payload: string, orders: PushedOrders): void {
    if (channel === this.#own) {
      this.#waitsForRing = false;
      return;
    }
    const hint = hintOf(payload);
    if (hint === undefined) return;
    // Only workers have to act on a cancel, and they have channels of their own.
    if (hint.type === 'cancel' && channel !== this.#everything) orders.tell(hint);
    else this.#options.onHint(hint);
  }
}

/** The channel for one worker, or for everything; the database computes the same in `tell`. */
export function channelOf(qualifier: string, worker: string | undefined): string {
  const name = worker === undefined ? qualifier : `${qualifier}/${worker}`;
  return `whoa_${createHash('sha256').update(name).digest('hex').slice(0, 40)}`;
}

/** Anybody with a connection can ring; what cannot be read is nobody's. */
function hintOf(payload: string): Hint | undefined {
  try {
    const [type, id, tenant, worker, conversation] = JSON.parse(payload) as (string | null)[];
    if (type === 'resync') return { type };
    return {
      type: type as 'status',
      id: id!,
      tenant: tenant!,
      ...(worker != null && { worker }),
      ...(conversation != null && { conversation }),
    };
  } catch {
    return undefined;
  }
}
