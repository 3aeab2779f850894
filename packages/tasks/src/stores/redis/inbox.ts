import { setTimeout as wait } from 'node:timers/promises';
import type { Hint, WatchFilter } from '../../store.ts';
import { Watchers } from '../watchers.ts';
import type { Calls, Reply } from './calls.ts';
import { type Client, connect, waitForReady } from './client.ts';
import { hintOf } from './hint.ts';
import { type RedisStoreOptions, TIMEOUT_MS } from './options.ts';
import { SCRIPTS } from './scripts.ts';
import type { SealOf } from './seal.ts';

/** A stream that nobody listens to any more is gone after this. */
const LISTEN_MS = 60_000;
/** One question waits this long for news. */
const BLOCK_MS = 10_000;
const COUNT = 1_000;
const RETRY_MS = 10;

interface InboxOptions {
  readonly store: RedisStoreOptions;
  readonly calls: Calls;
  readonly sealOf: SealOf;
  readonly name: string;
  /** Beginnings of the keys of the shards that this inbox reads, all in one place. */
  readonly tags: readonly string[];
  /** What every script is told first. */
  readonly common: () => readonly (string | number)[];
}

/**
 * Reads one stream of one or more shards, on a connection of its own. It goes on from where it was, so what is written
 * while the connection is broken is read when it is mended.
 */
export class Inbox implements AsyncDisposable {
  readonly watchers: Watchers = new Watchers();
  readonly #options: InboxOptions;
  readonly #cursors = new Map<string, string>();
  #listenedAt = 0;
  #client: Client | undefined;
  #reading: Promise<void> | undefined;
  #closed = false;

  constructor(options: InboxOptions) {
    this.#options = options;
  }

  /** Resolves when nothing that happens from now on can be missed. */
  async open(): Promise<void> {
    await this.#listen();
    this.#client = await connect(this.#options.store, 'whoa-inbox');
    this.#reading = this.#read(this.#client);
  }

  add(filter: WatchFilter, listener: (hint: Hint) => void): AsyncDisposable {
    return this.watchers.add(filter, listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.watchers.clear();
    this.#client?.disconnect();
    await this.#reading;
  }

  /** Says that somebody listens, and finds out whether something may have been missed. */
  async #listen(): Promise<void> {
    const { calls, tags, name, common } = this.#options;
    const startedAt = performance.now();
    await Promise.all(
      tags.map(async (tag) => {
        const [last, made] = (await calls.call(SCRIPTS.listen, tag, [...common(), name, LISTEN_MS])) as [
          string,
          string,
        ];
        const cursor = this.#cursors.get(tag);
        // A stream that was made anew, or that ends before what we have read, has lost something.
        if (cursor !== undefined && made === '0' && !isBefore(last, cursor)) return;
        this.#cursors.set(tag, last);
        if (cursor !== undefined) this.watchers.tell({ type: 'resync' });
      }),
    );
    this.#listenedAt = startedAt;
  }

  async #read(client: Client): Promise<void> {
    let isBroken = false;
    while (!this.#closed) {
      try {
        if (client.status !== 'ready') await waitForReady(client, BLOCK_MS);
        if (isBroken || performance.now() - this.#listenedAt > LISTEN_MS / 4) await this.#listen();
        isBroken = false;
        await this.#readOnce(client);
      } catch {
        // Whatever it was: go on from the cursor as soon as there is a connection again.
        isBroken = true;
        await wait(RETRY_MS);
      }
    }
  }

  async #readOnce(client: Client): Promise<void> {
    const { tags, name, store } = this.#options;
    const keys = tags.map((tag) => tag + name);
    const cursors = tags.map((tag) => this.#cursors.get(tag)!);
    const asked = client.xread('COUNT', COUNT, 'BLOCK', BLOCK_MS, 'STREAMS', ...keys, ...cursors) as Promise<Reply>;
    const reply = await inTime(asked, client, BLOCK_MS + (store.timeoutMs ?? TIMEOUT_MS));
    for (const [key, entries] of (reply ?? []) as [string, [string, string[]][]][]) {
      const tag = key.slice(0, -name.length);
      if (entries.length >= COUNT) await this.#checkGap(client, key, this.#cursors.get(tag)!);
      for (const [id, fields] of entries) {
        this.#cursors.set(tag, id);
        const hint = hintOf(fields, this.#options.sealOf);
        if (hint !== undefined) this.watchers.tell(hint);
      }
    }
  }

  /** Whoever is so far behind may have been left behind: streams are cut at their old end. */
  async #checkGap(client: Client, key: string, cursor: string): Promise<void> {
    const [oldest] = await client.xrange(key, '-', '+', 'COUNT', 1);
    if (oldest === undefined || isBefore(cursor, oldest[0])) this.watchers.tell({ type: 'resync' });
  }
}

/** A connection that was cut without a word never answers; mend it. */
async function inTime(asked: Promise<Reply>, client: Client, ms: number): Promise<Reply> {
  const timer = setTimeout(() => client.disconnect(true), ms);
  try {
    return await asked;
  } finally {
    clearTimeout(timer);
  }
}

/** Ids of entries are `milliseconds-number`. */
function isBefore(a: string, b: string): boolean {
  const [aMs = 0, aNumber = 0] = a.split('-').map(Number);
  const [bMs = 0, bNumber = 0] = b.split('-').map(Number);
  return aMs < bMs || (aMs === bMs && aNumber < bNumber);
}
