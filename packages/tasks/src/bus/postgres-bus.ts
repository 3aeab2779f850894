import { randomBytes } from 'node:crypto';
import type { Clock } from '@whoa/core/embed';
import { checkSession, connectDedicated, type ServerOptions } from '../ledger/postgres/connection/connect.ts';
import { type Bus, MAX_MESSAGE_BYTES } from './bus.ts';
import { Joiner, toPieces } from './pieces.ts';
import { type Listening, Reception } from './reception.ts';

interface PostgresBusOptions {
  readonly inbox?: string;
  /** Where it listens: the server itself, or a pooler in session mode. */
  readonly server: ServerOptions;
  readonly clock: Clock;
  /** How often a silent connection is checked. */
  readonly pollIntervalMs: number;
  /** Notifies in a transaction without writes: a full queue fails each transaction that notifies. */
  readonly notify: (channels: readonly string[], payloads: readonly string[]) => Promise<unknown>;
}

/** The server refuses notifications that are longer than 7,999 bytes. */
const MAX_PIECE = 7_900;
const MAX_QUEUED_PIECES = 2_000;

/** A bus of notifications. Each inbox is a channel with a name that cannot be guessed. */
export class PostgresBus implements Bus {
  readonly inbox: string;
  readonly #options: PostgresBusOptions;
  readonly #reception: Reception;
  readonly #joiner = new Joiner();
  #queue: (readonly [channel: string, piece: string])[] = [];
  #sending: Promise<void> | undefined;

  constructor(options: PostgresBusOptions) {
    const { clock, pollIntervalMs: checkMs } = options;
    this.inbox = options.inbox ?? `whoa_${randomBytes(12).toString('hex')}`;
    this.#options = options;
    this.#reception = new Reception({ clock, checkMs, connect: (onLost) => this.#listen(onLost) });
  }

  send(inbox: string, message: Uint8Array): boolean {
    if (message.length > MAX_MESSAGE_BYTES || this.#queue.length >= MAX_QUEUED_PIECES) return false;
    for (const piece of toPieces(message, MAX_PIECE)) this.#queue.push([inbox, piece]);
    this.#sending ??= this.#send().finally(() => (this.#sending = undefined));
    return true;
  }

  receive(listener: (message: Uint8Array) => void): Promise<Disposable> {
    return this.#reception.receive(listener);
  }

  onGap(listener: () => void): Disposable {
    return this.#reception.onGap(listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sending;
    await this.#reception.close();
  }

  /** One transaction at a time: what is sent meanwhile goes with the next. */
  async #send(): Promise<void> {
    // What is sent in the same tick shares a transaction.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      const [channels, pieces] = [this.#queue.map(([channel]) => channel), this.#queue.map(([, piece]) => piece)];
      this.#queue = [];
      // A lost message is no error: its receiver finds the change with its next poll.
      await this.#options.notify(channels, pieces).catch(() => {});
    }
  }

  async #listen(onLost: () => void): Promise<Listening> {
    const { server } = this.#options;
    const settings = { operation: 'watch', application_name: 'whoa listens', pipeline: true };
    const { connection, sockets } = await connectDedicated(server, settings);
    connection.on('end', onLost);
    connection.on('notification', ({ payload = '' }) => {
      const message = this.#joiner.add(payload);
      if (message !== undefined) this.#reception.deliver(message);
    });
    sockets.unref();
    try {
      await checkSession(server, { connection, sockets });
      // A suspended process must not keep the server from discarding what all others have received.
      await connection.query(`SET tcp_user_timeout = ${server.statementTimeoutMs}`);
      await connection.query(`LISTEN ${this.inbox}`);
    } catch (error) {
      sockets.destroy();
      throw error;
    }
    return {
      check: () => connection.query('SELECT 1'),
      close: () => sockets.endWithin(() => connection.end()),
    };
  }
}
