import type { Redis, RedisOptions } from 'ioredis';
import { StoreSetupError } from '../../../errors.ts';

export type Reply = string | number | null | readonly Reply[];

/** What became of a command: the server answered, refused it, never got it, or the outcome is unknown. */
export type Sent =
  | { readonly reply: Reply }
  | { readonly refused: Error }
  | { readonly unsent: Error | undefined }
  | { readonly lost: Error };

/** How a connection tells its store what happens on it. */
export interface ConnectionEvents {
  message(channel: string, text: string): void;
  /** Whatever was subscribed on it no longer is. */
  lost(connection: Connection): void;
  /** The server has given away a slot that something was subscribed in. */
  slotGone(connection: Connection): void;
}

interface Library {
  readonly Redis: typeof Redis;
  /** What the library throws when the server refuses a command; everything else happened on the way. */
  readonly ReplyError: new () => Error;
  /** Version 5 speaks RESP2 only: there a connection that is subscribed to something takes no other commands. */
  readonly hasResp3: boolean;
}

/** A server that said nothing for this long when a command timed out is not slow: the connection is dead. */
const SILENT_MS = 250;
const MAX_LEAVE_MS = 1_000;
const REVIVE_MS = 100;

/** Loads the library on first use. */
export async function loadLibrary(): Promise<Library> {
  try {
    const { Redis: Client, ReplyError } = (await import('ioredis')) as Omit<Library, 'hasResp3'>;
    // Not connected, only asked for its defaults: an option that a version does not know is kept like any other.
    const { protocol } = new Client({ lazyConnect: true }).options;
    return { Redis: Client, ReplyError, hasResp3: protocol === 3 };
  } catch (error) {
    throw new StoreSetupError("The Redis store needs the package 'ioredis'; install it: npm install ioredis", {
      cause: error,
    });
  }
}

/** One connection to one server, for commands and, where it can be, subscriptions. It mends itself until it is closed. */
export class Connection {
  /** What must be known of the server before it is used; asked again after every loss. */
  admission: Promise<Sent | undefined> | undefined;
  isAdmitted = false;
  /** Rises with every loss, so that what was agreed with the server before is known to be void. */
  generation = 0;
  /** Why there is no connection, in the library's words. */
  lastError: Error | undefined;
  readonly #client: Redis;
  readonly #library: Library;
  readonly #options: RedisOptions;
  readonly #events: ConnectionEvents;
  #listener: Connection | undefined;
  #heardAt = 0;
  #pending = 0;
  #leaving: Promise<void> | undefined;
  #whenIdle: (() => void) | undefined;
  #reviving: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(library: Library, options: RedisOptions, events: ConnectionEvents) {
    this.#library = library;
    this.#options = options;
    this.#events = events;
    const client = new library.Redis(options as object);
    this.#client = client;
    // Without a listener the library writes to the console; what goes wrong is told by the operation it happens to.
    client.on('error', (error: Error) => (this.lastError = error));
    // However many operations wait for a connection, each with a listener of its own.
    client.setMaxListeners(0);
    client.on('smessage', (channel: string, text: string) => {
      this.#heardAt = performance.now();
      events.message(channel, text);
    });
    client.on('moved', () => events.slotGone(this));
    client.on('close', () => {
      this.admission = undefined;
      this.isAdmitted = false;
      this.generation++;
      events.lost(this);
    });
    client.on('end', () => this.#revive());
  }

  /** The connection to subscribe on: this one, or with RESP2 one that does nothing else. */
  get listener(): Connection {
    if (this.#library.hasResp3) return this;
    this.#listener ??= new Connection(this.#library, this.#options, this.#events);
    return this.#listener;
  }

  /** Whether a command given now is written to the server at once. */
  get isReady(): boolean {
    const { status, stream } = this.#client;
    return status === 'ready' && stream.writable && this.#leaving === undefined;
  }

  get silentMs(): number {
    return performance.now() - this.#heardAt;
  }

  /** Waits until there is a connection; false if there is none in time. */
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

  /** Sends a command, if there is a connection. A server that does not answer in time is left. */
  send(issue: (client: Redis) => Promise<unknown>, ms: number): Promise<Sent> {
    if (!this.isReady) return Promise.resolve({ unsent: this.lastError });
    return new Promise((resolve) => {
      const sentAt = performance.now();
      // Send first: whatever else there is to do is done while the server works.
      const sent = issue(this.#client);
      this.#pending++;
      // A whole number of milliseconds, most often the same: then timers share a list and cost next to nothing.
      const timer = setTimeout(() => {
        resolve({ lost: new Error(`no answer within ${Math.ceil(ms)} ms`) });
        this.#leaveIfSilent(sentAt);
      }, Math.ceil(ms));
      const settle = (outcome: Sent): void => {
        clearTimeout(timer);
        resolve(outcome);
        if (--this.#pending === 0) this.#whenIdle?.();
      };
      sent.then(
        (reply) => {
          this.#heardAt = performance.now();
          settle({ reply: reply as Reply });
        },
        (error: Error) => {
          if (!(error instanceof this.#library.ReplyError)) return settle({ lost: error });
          this.#heardAt = performance.now();
          return settle({ refused: error });
        },
      );
    });
  }

  /** Breaks the connection off and makes another, perhaps to another server. Until then nothing is sent. */
  leave(): void {
    if (this.#listener?.isReady) this.#listener.leave();
    this.#leaving ??= new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, MAX_LEAVE_MS);
      this.#client.once('close', () => {
        clearTimeout(timer);
        resolve();
      });
      // Don't end it politely: a network that swallows everything would swallow that too.
      this.#client.stream.destroy();
    }).finally(() => (this.#leaving = undefined));
  }

  /** Closes it when everything that was sent has been answered, or when it had that long. */
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

  /** The library gives up for good when the Sentinels name another master while it connects. We don't. */
  #revive(): void {
    if (this.#isClosed) return;
    this.#reviving = setTimeout(() => {
      this.#client.connect().catch((error: Error) => (this.lastError = error));
    }, REVIVE_MS);
  }

  /** A connection that was cut without a word never answers, and the system would notice only after minutes. */
  #leaveIfSilent(sentAt: number): void {
    const silentSince = Math.max(this.#heardAt, sentAt);
    if (this.#client.status === 'ready' && performance.now() - silentSince >= SILENT_MS) this.leave();
  }
}
