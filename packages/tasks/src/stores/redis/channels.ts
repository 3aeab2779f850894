import { setTimeout as wait } from 'node:timers/promises';
import type { Hint, WatchFilter } from '../../store.ts';
import { Watchers } from '../watchers.ts';
import type { Connection, Subscriber } from './connection/connection.ts';
import { parseHint } from './replies/hint.ts';
import type { Shards } from './shards.ts';

/** A subscribed connection is checked when it was silent for this long. */
const SILENCE_TIMEOUT_MS = 5_000;
const RETRY_DELAY_MS = 50;

/** A channel of one shard. */
export interface ChannelRef {
  readonly channel: string;
  readonly domain: number;
}

/** A channel, its listeners, and its connection. */
interface Channel extends ChannelRef {
  readonly watchers: Watchers;
  opened: Promise<void>;
  users: number;
  on?: { readonly connection: Connection; readonly generation: number };
}

/**
 * The change notifier of this process. Messages that a connection missed while it was broken are not sent again:
 * watchers get a `resync` as soon as it is restored.
 */
export class Channels implements Subscriber, AsyncDisposable {
  readonly #shards: Shards;
  readonly #timeoutMs: number;
  readonly #channels = new Map<string, Channel>();
  #resubscribing: Promise<void> | undefined;
  #isOutOfDate = false;
  #keepingAlive: Promise<void> | undefined;
  readonly #closing = new AbortController();

  constructor(shards: Shards, timeoutMs: number) {
    this.#shards = shards;
    this.#timeoutMs = timeoutMs;
  }

  /** Resolves when nothing that happens from now on can be missed without a `resync`. */
  async watch(
    refs: readonly ChannelRef[],
    filter: WatchFilter,
    listener: (hint: Hint) => void,
  ): Promise<AsyncDisposable> {
    const channels = refs.map((ref) => this.#use(ref));
    const onHint = coalesceResync(listener);
    const watching = channels.map(({ watchers }) => watchers.add(filter, onHint));
    let left = false;
    const leave = async (): Promise<void> => {
      if (left) return;
      left = true;
      await Promise.all(watching.map((one) => one[Symbol.asyncDispose]()));
      await Promise.all(channels.map((channel) => this.#leave(channel)));
    };
    try {
      await Promise.all(channels.map(({ opened }) => opened));
    } catch (error) {
      await leave();
      throw error;
    }
    return { [Symbol.asyncDispose]: leave };
  }

  message(name: string, text: string): void {
    const channel = this.#channels.get(name);
    const hint = channel && parseHint(text, channel.domain);
    if (hint !== undefined) channel!.watchers.notify(hint);
  }

  /** Notifies listeners of a channel in this process about its own change. */
  notify(name: string, hint: Hint): void {
    this.#channels.get(name)?.watchers.notify(hint);
  }

  /** Restores the channels of a connection. */
  lost(connection: Connection): void {
    for (const channel of this.#channels.values()) if (channel.on?.connection === connection) delete channel.on;
    this.#isOutOfDate = true;
    if (this.#isClosed) return;
    this.#resubscribing ??= this.#resubscribeAll().finally(() => (this.#resubscribing = undefined));
  }

  /** Stops all notifications. Close the connections before you wait for the end: it may wait for their replies. */
  close(): void {
    this.#closing.abort();
    for (const { watchers } of this.#channels.values()) watchers.clear();
    this.#channels.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
    await this.#resubscribing;
    await this.#keepingAlive;
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  #use(ref: ChannelRef): Channel {
    const known = this.#channels.get(ref.channel);
    if (known !== undefined) {
      known.users++;
      return known;
    }
    const made: Channel = { ...ref, watchers: new Watchers(), users: 1, opened: Promise.resolve() };
    this.#channels.set(ref.channel, made);
    made.opened = this.#subscribe(made);
    this.#keepingAlive ??= this.#keepAlive().finally(() => (this.#keepingAlive = undefined));
    return made;
  }

  async #leave(channel: Channel): Promise<void> {
    if (--channel.users > 0) return;
    if (this.#channels.get(channel.channel) === channel) this.#channels.delete(channel.channel);
    await channel.on?.connection.send((client) => client.sunsubscribe(channel.channel), this.#timeoutMs);
  }

  async #subscribe(channel: Channel): Promise<void> {
    const connection = await this.#shards.subscribe(channel.domain, channel.channel, this);
    channel.on = { connection, generation: connection.generation };
  }

  /** Retries until every channel is subscribed again, then notifies listeners that may have missed a change. */
  async #resubscribeAll(): Promise<void> {
    while (this.#isOutOfDate && !this.#isClosed) {
      this.#isOutOfDate = false;
      // A channel that is being opened is handled by the call that opens it.
      await Promise.allSettled([...this.#channels.values()].map(({ opened }) => opened));
      const lost = [...this.#channels.values()].filter((channel) => !isHeard(channel));
      const results = await Promise.allSettled(lost.map((channel) => this.#subscribe(channel)));
      if (results.some((result) => result.status === 'rejected')) this.#isOutOfDate = true;
      for (const [i, { watchers }] of lost.entries()) {
        if (results[i]!.status === 'fulfilled') watchers.notify({ type: 'resync' });
      }
      if (this.#isOutOfDate && !this.#isClosed) await wait(RETRY_DELAY_MS);
    }
  }

  /** Checks servers that were silent for long; one that does not respond is disconnected. */
  async #keepAlive(): Promise<void> {
    const { signal } = this.#closing;
    while (this.#channels.size > 0) {
      await wait(SILENCE_TIMEOUT_MS / 2, undefined, { signal }).catch(() => {});
      const connections = new Set([...this.#channels.values()].flatMap(({ on }) => (on ? [on.connection] : [])));
      const silent = [...connections].filter(({ silentMs }) => silentMs >= SILENCE_TIMEOUT_MS);
      await Promise.all(silent.map((connection) => connection.send((client) => client.ping(), this.#timeoutMs)));
    }
  }
}

function isHeard({ on }: Channel): boolean {
  return on !== undefined && on.generation === on.connection.generation;
}

/** Sends a listener of many shards one `resync`, not one per shard. */
function coalesceResync(listener: (hint: Hint) => void): (hint: Hint) => void {
  let isTold = false;
  return (hint) => {
    if (hint.type === 'resync') {
      if (isTold) return;
      isTold = true;
      queueMicrotask(() => (isTold = false));
    }
    listener(hint);
  };
}
