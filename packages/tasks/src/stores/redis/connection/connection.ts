import type { Redis, RedisOptions } from 'ioredis';
import { StoreSetupError } from '../../../errors.ts';

export type Reply = string | number | null | readonly Reply[];

/** The result of a command: the server replied, refused it, never got it, or the outcome is unknown. */
export type Sent =
  | { readonly reply: Reply }
  | { readonly refused: Error }
  | { readonly unsent: Error | undefined }
  | { readonly lost: Error };

/** Hears what a connection subscribes to. */
export interface Subscriber {
  message(channel: string, text: string): void;
  /** All subscriptions on it are gone, or the server has given away a slot with one. */
  lost(connection: Connection): void;
}

interface Library {
  readonly Redis: typeof Redis;
  /** The error that the library throws when the server refuses a command. All other errors happened on the way. */
  readonly ReplyError: new () => Error;
  /** Version 5 supports only RESP2: there a subscribed connection accepts no other commands. */
  readonly hasResp3: boolean;
}

/** If the server was silent for this long when a command timed out, the connection is dead, not slow. */
const SILENCE_TIMEOUT_MS = 250;
const MAX_LEAVE_MS = 1_000;
const REVIVE_MS = 100;

/** Loads the library on first use. */
export async function loadLibrary(): Promise<Library> {
  try {
    const { Redis: Client, ReplyError } = (await import('ioredis')) as Omit<Library, 'hasResp3'>;
    // Never connects. It only shows the defaults: a version that does not know an option keeps it like any other.
    const { protocol } = new Client({ lazyConnect: true }).options;
    return { Redis: Client, ReplyError, hasResp3: protocol === 3 };
  } catch (error) {
    throw new StoreSetupError("The Redis store needs the package 'ioredis'; install it: npm install ioredis", {
      cause: error,
    });
  }
}

/** One connection to one server, for commands and, if possible, subscriptions. It reconnects until it is closed. */
export class Connection {
  /** The check of the server before it is used; repeated after every loss. */
  admission: Promise<Sent | undefined> | undefined;
  isAdmitted = false;
  /** Until it is lost: the server does not let this user call or load functions. */
  refusesFunctions = false;
  /** The functions are being loaded. */
  loading: Promise<Sent> | undefined;
  /** Set before the first subscription. */
  subscriber: Subscriber | undefined;
  /** Increases with every loss: earlier agreements with the server are void then. */
  generation = 0;
  /** Why there is no connection: the library's error. */
  lastError: Error | undefined;
  readonly #client: Redis;
  readonly #library: Library;
  readonly #options: RedisOptions;
  #listener: Connection | undefined;
  #lastReceivedAt = 0;
  #pending = 0;
  #leaving: Promise<void> | undefined;
  #whenIdle: (() => void) | undefined;
  #reviving: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(library: Library, options: RedisOptions) {
    this.#library = library;
    this.#options = options;
    const client = new library.Redis(options as object);
    this.#client = client;
    // Without a listener the library writes to the console. The failing operation reports the error.
    client.on('error', (error: Error) => (this.lastError = error));
    // Any number of operations may wait for a connection, each with its own listener.
    client.setMaxListeners(0);
    client.on('smessage', (channel: string, text: string) => {
      this.#lastReceivedAt = performance.now();
      this.subscriber?.message(channel, text);
    });
    client.on('moved', () => this.subscriber?.lost(this));
    client.on('close', () => {
      this.admission = undefined;
      this.isAdmitted = false;
      this.refusesFunctions = false;
      this.generation++;
      this.subscriber?.lost(this);
    });
    client.on('end', () => this.#reconnect());
  }

  /** The connection for subscriptions: this one, or a separate one with RESP2. */
  get listener(): Connection {
    if (this.#library.hasResp3) return this;
    this.#listener ??= new Connection(this.#library, this.#options);
    return this.#listener;
  }

  /** Whether a command is written to the server immediately. */
  get isReady(): boolean {
    const { status, stream } = this.#client;
    return status === 'ready' && stream.writable && this.#leaving === undefined;
  }

  get silentMs(): number {
    return performance.now() - this.#lastReceivedAt;
  }

  /** Waits for a connection. Resolves with false after the timeout. */
  async waitForReady(ms: number): Promise<boolean> {
    await this.#leaving;
    const client = this.#client;
    if (this.isReady) return true;
    return new Promise((resolve) => {
      const settle = (isReady: boolean) => (): void => {
        clearTimeout(timer);
        client.off('ready', onReady);
        client.off('end', onEnd);
        resolve(isReady);
      };
      const [onReady, onEnd] = [settle(true), settle(false)];
      const timer = setTimeout(onEnd, Math.max(1, Math.ceil(ms)));
      client.once('ready', onReady);
      client.once('end', onEnd);
    });
  }

  /** Sends a command, if there is a connection. Disconnects from a server that does not reply in time. */
  send(issue: (client: Redis) => Promise<unknown>, ms: number): Promise<Sent> {
    if (!this.isReady) return Promise.resolve({ unsent: this.lastError });
    return new Promise((resolve) => {
      const sentAt = performance.now();
      // Send first: the rest is done while the server works.
      const sent = issue(this.#client);
      this.#pending++;
      // Use whole milliseconds, mostly the same number: then timers share a list and are cheap.
      const timer = setTimeout(() => {
        resolve({ lost: new Error(`no response within ${Math.ceil(ms)} ms`) });
        this.#leaveIfSilent(sentAt);
      }, Math.ceil(ms));
      const settle = (outcome: Sent): void => {
        clearTimeout(timer);
        resolve(outcome);
        if (--this.#pending === 0) this.#whenIdle?.();
      };
      sent.then(
        (reply) => {
          this.#lastReceivedAt = performance.now();
          settle({ reply: reply as Reply });
        },
        (error: Error) => {
          if (!(error instanceof this.#library.ReplyError)) return settle({ lost: error });
          this.#lastReceivedAt = performance.now();
          return settle({ refused: error });
        },
      );
    });
  }

  /** Drops the connection and opens another, perhaps to another server. Until then nothing is sent. */
  leave(): void {
    if (this.#listener?.isReady) this.#listener.leave();
    this.#leaving ??= new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, MAX_LEAVE_MS);
      this.#client.once('close', () => {
        clearTimeout(timer);
        resolve();
      });
      // Don't close it gracefully: a broken network would never deliver that.
      this.#client.stream.destroy();
    }).finally(() => (this.#leaving = undefined));
  }

  /** Closes it when every sent command has been answered, or after the given time. */
  retire(ms: number): void {
    const timer = setTimeout(() => this.close(), ms);
    this.#whenIdle = () => {
      clearTimeout(timer);
      this.close();
    };
    if (this.#pending === 0) this.#whenIdle();
  }

  close(): void {
    this.#isClosed = true;
    this.#listener?.close();
    clearTimeout(this.#reviving);
    this.#whenIdle = undefined;
    this.#client.disconnect();
  }

  /** Needed because the library gives up permanently when the Sentinels name another master while it connects. */
  #reconnect(): void {
    if (this.#isClosed) return;
    this.#reviving = setTimeout(() => {
      this.#client.connect().catch((error: Error) => (this.lastError = error));
    }, REVIVE_MS);
  }

  /** Drops a dead connection: the operating system would notice it only after minutes. */
  #leaveIfSilent(sentAt: number): void {
    const silentSince = Math.max(this.#lastReceivedAt, sentAt);
    if (this.#client.status === 'ready' && performance.now() - silentSince >= SILENCE_TIMEOUT_MS) this.leave();
  }
}

/** Which connection leads to which shard. */
export interface Routes {
  /** Returns the connection to the master of a slot; undefined until a node has named it. */
  at(slot: number): Connection | undefined;
  /** Records a `MOVED` reply: the master of one slot, as `host:port`. */
  move(slot: number, address: string, toldBy: Connection): void;
  /** Reads the slot map again, at most once a second. */
  refresh(): void;
  /** Like `refresh`, and resolves when the map has been read. */
  refreshed(): Promise<void>;
  close(): void;
}
