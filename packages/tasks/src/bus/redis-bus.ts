import { randomBytes } from 'node:crypto';
import { systemClock } from '@whoa/core/embed';
import { waitAtMost } from '@whoa/core/internal';
import type { Cluster, Redis, RedisOptions } from 'ioredis';
import { StoreSetupError } from '../errors.ts';
import { type Bus, MAX_MESSAGE_BYTES } from './bus.ts';
import { type Listening, Reception } from './reception.ts';

/** A bus on Redis. */
export interface RedisBusConfig {
  readonly backend: 'redis';
  /** `redis://host:6379`, or some nodes of a Cluster. */
  readonly url: string | readonly string[];
  /** The servers are a Redis Cluster: messages are sharded over it. */
  readonly cluster?: boolean | undefined;
}

type Library = Pick<typeof import('ioredis'), 'Redis' | 'Cluster'>;

const MAX_PENDING = 10_000;
const TIMEOUT_MS = 1_000;
const RETRY_MS = 250;
const CHECK_MS = 2_000;

/** A bus on Redis. Each inbox is a channel. Others can listen and send: seal it. */
export class RedisBus implements Bus {
  readonly inbox: string;
  readonly #urls: readonly string[];
  readonly #isCluster: boolean;
  readonly #reception: Reception;
  readonly #pending = new Set<Promise<unknown>>();
  #publisher: Promise<Redis | Cluster> | undefined;
  #attempts = 0;

  constructor(
    { url, cluster = false }: Pick<RedisBusConfig, 'url' | 'cluster'>,
    inbox: string = `whoa:inbox:${randomBytes(12).toString('hex')}`,
  ) {
    this.inbox = inbox;
    this.#urls = [url].flat();
    this.#isCluster = cluster;
    const connect = (onLost: () => void): Promise<Listening> => this.#listen(onLost);
    this.#reception = new Reception({ connect, clock: systemClock, checkMs: CHECK_MS });
  }

  send(inbox: string, message: Uint8Array): boolean {
    if (this.#pending.size >= MAX_PENDING || message.length > MAX_MESSAGE_BYTES) return false;
    this.#publisher ??= this.#connect();
    const sending = this.#publisher
      .then((client) => client[this.#isCluster ? 'spublish' : 'publish'](inbox, Buffer.from(message)))
      // A lost message is no error: its receiver finds the change with its next poll.
      .catch(() => {})
      .finally(() => this.#pending.delete(sending));
    this.#pending.add(sending);
    return true;
  }

  receive(listener: (message: Uint8Array) => void): Promise<Disposable> {
    return this.#reception.receive(listener);
  }

  onGap(listener: () => void): Disposable {
    return this.#reception.onGap(listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reception.close();
    await waitAtMost(Promise.all(this.#pending), TIMEOUT_MS);
    (await this.#publisher?.catch(() => undefined))?.disconnect();
  }

  async #connect(): Promise<Redis | Cluster> {
    const { Redis: Client, Cluster: Clients } = await loadLibrary();
    const retry = (): number => RETRY_MS;
    const options = { connectionName: 'whoa', commandTimeout: TIMEOUT_MS, maxRetriesPerRequest: 0 };
    const client = this.#isCluster
      ? new Clients([...this.#urls], { redisOptions: options, clusterRetryStrategy: retry })
      : new Client(this.#urls[0]!, { ...options, retryStrategy: retry });
    // Without a listener the library writes to the console.
    client.on('error', () => {});
    return client;
  }

  /** Listens on one of the servers. `moved`: the node of the Cluster that has the channel. */
  async #listen(onLost: () => void, moved: Pick<RedisOptions, 'host' | 'port'> = {}): Promise<Listening> {
    const { Redis: Client } = await loadLibrary();
    const options = { connectionName: 'whoa', autoResubscribe: false, commandTimeout: TIMEOUT_MS, ...moved };
    const url = this.#urls[this.#attempts++ % this.#urls.length]!;
    const client = new Client(url, { ...options, lazyConnect: true, retryStrategy: () => null });
    let cause: unknown;
    client.on('error', (error) => (cause = error));
    for (const event of ['messageBuffer', 'smessageBuffer'])
      client.on(event, (_channel: Buffer, message: Buffer) => this.#reception.deliver(message));
    try {
      await client.connect();
      await client[this.#isCluster ? 'ssubscribe' : 'subscribe'](this.inbox);
    } catch (error) {
      client.disconnect();
      const [, host, port] = /^MOVED \d+ (.+):(\d+)$/.exec((error as Error).message) ?? [];
      if (host === undefined || moved.host !== undefined) throw cause ?? error;
      return this.#listen(onLost, { host, port: Number(port) });
    }
    client.once('end', onLost);
    // Another node of the Cluster has taken the channel over.
    client.once('sunsubscribe', () => client.disconnect());
    return { check: () => client.ping(), close: () => client.disconnect() };
  }
}

async function loadLibrary(): Promise<Library> {
  try {
    return await import('ioredis');
  } catch (cause) {
    throw new StoreSetupError("The Redis bus needs the package 'ioredis'; install it: npm install ioredis", { cause });
  }
}
