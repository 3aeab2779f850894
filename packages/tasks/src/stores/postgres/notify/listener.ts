import type { Clock } from '@whoa/core/embed';
import { checkSession, connectDedicated, type DedicatedConnection, type ServerOptions } from '../connection/connect.ts';

export interface ListenerOptions {
  readonly server: ServerOptions;
  readonly clock: Clock;
  /** How often the connection is checked. */
  readonly pollIntervalMs: number;
}

export interface Subscriber {
  onNotification(channel: string, payload: string): void;
  /** The connection was lost and is back: any task may have changed. */
  onGap(): void;
}

/** The pause before a broken connection is opened again. It doubles each time, up to a second. */
const RETRY_DELAY_MS = 20;
const MAX_RETRY_MS = 1_000;
const MAX_LISTEN_ATTEMPTS = 3;

const shared = new WeakMap<Clock, Map<string, Listener>>();

/** Returns the listener of this process for a server: all watched stores share its connection. */
export function shareListener(options: ListenerOptions): Listener {
  const { url = '', connectTimeoutMs, statementTimeoutMs } = options.server;
  const key = JSON.stringify([url, connectTimeoutMs, statementTimeoutMs, options.pollIntervalMs]);
  const listeners = shared.get(options.clock) ?? new Map<string, Listener>();
  shared.set(options.clock, listeners);
  const listener = listeners.get(key) ?? new Listener(options, () => listeners.delete(key));
  listeners.set(key, listener);
  return listener;
}

/**
 * Receives the notifications of a database on a separate connection. Postgres drops notifications for clients that are
 * not connected, so after every gap its subscribers resync. The connection is checked every `pollIntervalMs` if nothing
 * arrived; one that does not respond is replaced.
 */
class Listener {
  readonly #options: ListenerOptions;
  readonly #onEmpty: () => void;
  readonly #channels = new Map<string, Set<Subscriber>>();
  #connection: DedicatedConnection | undefined;
  #connecting: Promise<DedicatedConnection> | undefined;
  #listening = new Map<string, Promise<unknown>>();
  #timer: Disposable | undefined;
  #hasHeard = false;
  #gap = false;
  #failures = 0;

  constructor(options: ListenerOptions, onEmpty: () => void) {
    this.#options = options;
    this.#onEmpty = onEmpty;
  }

  /** Resolves when it is listening. Rejects if the database cannot be reached or does not support LISTEN here. */
  async subscribe(channel: string, subscriber: Subscriber): Promise<void> {
    const subscribers = this.#channels.get(channel) ?? new Set();
    this.#channels.set(channel, subscribers.add(subscriber));
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#listen(await this.#connect(), channel);
        return;
      } catch (error) {
        if (attempt < MAX_LISTEN_ATTEMPTS && (error as { code?: string }).code !== 'STORE_SETUP') continue;
        await this.unsubscribe(channel, subscriber);
        throw error;
      }
    }
  }

  async unsubscribe(channel: string, subscriber: Subscriber): Promise<void> {
    const subscribers = this.#channels.get(channel);
    if (subscribers?.delete(subscriber) !== true || subscribers.size > 0) return;
    this.#channels.delete(channel);
    if (this.#channels.size === 0) await this.#close();
    // If the connection breaks now, its replacement does not listen to the channel.
    else if (this.#listening.delete(channel))
      await this.#connection?.connection.query(`UNLISTEN ${channel}`).catch(() => {});
  }

  async #close(): Promise<void> {
    this.#onEmpty();
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    const open = (await this.#connecting?.catch(() => undefined)) ?? this.#connection;
    this.#connection = undefined;
    this.#gap = false;
    await open?.sockets.endWithin(() => open.connection.end());
  }

  #connect(): Promise<DedicatedConnection> {
    if (this.#connection !== undefined) return Promise.resolve(this.#connection);
    this.#connecting ??= this.#open().finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  async #open(): Promise<DedicatedConnection> {
    const { server, pollIntervalMs } = this.#options;
    const open = await connectDedicated(server, {
      operation: 'watch',
      application_name: 'whoa listens',
      pipeline: true,
    });
    open.sockets.unref();
    open.connection.on('end', () => this.#onConnectionLost(open));
    open.connection.on('notification', ({ channel, payload = '' }) => this.#onNotification(channel, payload));
    this.#connection = open;
    this.#listening = new Map();
    try {
      await checkSession(server, open);
      // A suspended process must not keep the server from discarding notifications that all others have received.
      await open.connection.query(`SET tcp_user_timeout = ${server.statementTimeoutMs}`);
      await Promise.all([...this.#channels.keys()].map((channel) => this.#listen(open, channel)));
    } catch (error) {
      open.sockets.destroy();
      this.#onConnectionLost(open);
      throw error;
    }
    this.#failures = 0;
    this.#tryAgainIn(pollIntervalMs);
    // Don't do this earlier: changes between reading and listening would be missed.
    if (this.#gap) for (const subscriber of new Set(this.#subscribers())) subscriber.onGap();
    this.#gap = false;
    return open;
  }

  async #listen(open: DedicatedConnection, channel: string): Promise<void> {
    const listening = this.#listening.get(channel) ?? open.connection.query(`LISTEN ${channel}`);
    if (this.#connection === open) this.#listening.set(channel, listening);
    await listening;
  }

  *#subscribers(): Iterable<Subscriber> {
    for (const subscribers of this.#channels.values()) yield* subscribers;
  }

  #onNotification(channel: string, payload: string): void {
    this.#hasHeard = true;
    for (const subscriber of this.#channels.get(channel) ?? []) subscriber.onNotification(channel, payload);
  }

  #onConnectionLost(open: DedicatedConnection): void {
    if (this.#connection !== open) return;
    this.#connection = undefined;
    if (this.#channels.size === 0) return;
    this.#gap = true;
    this.#tryAgainIn(this.#retryMs());
  }

  #retryMs(): number {
    return Math.min(RETRY_DELAY_MS * 2 ** this.#failures++, MAX_RETRY_MS);
  }

  #tryAgainIn(ms: number): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = this.#options.clock.setTimer(ms, () => this.#try(), { keepAlive: false });
  }

  /** Checks whether the connection still responds, or connects again. */
  #try(): void {
    const open = this.#connection;
    if (open === undefined) {
      this.#connect().catch(() => this.#channels.size > 0 && this.#tryAgainIn(this.#retryMs()));
      return;
    }
    if (this.#hasHeard) {
      this.#hasHeard = false;
      this.#tryAgainIn(this.#options.pollIntervalMs);
      return;
    }
    // Don't wait for the driver's timeout: a cancel in the meantime would be missed.
    this.#timer = this.#options.clock.setTimer(this.#options.pollIntervalMs, () => this.#leave(open), {
      keepAlive: false,
    });
    open.connection.query('SELECT 1').then(
      () => this.#connection === open && this.#tryAgainIn(this.#options.pollIntervalMs),
      () => this.#leave(open),
    );
  }

  #leave(open: DedicatedConnection): void {
    open.sockets.destroy();
    this.#onConnectionLost(open);
  }
}

export type { Listener };
