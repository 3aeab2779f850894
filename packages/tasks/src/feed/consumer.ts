import type { World } from '@whoa/core/embed';
import type { Hint, TaskStore } from '../store.ts';
import type { FeedEvent, FeedKind, FeedPage, FeedReader } from './feed.ts';

export interface FeedConsumerOptions {
  readonly store: Pick<TaskStore, 'feed' | 'watch'>;
  /** Its name: all processes with this name share the work. */
  readonly consumer: string;
  readonly kinds: readonly FeedKind[];
  readonly world: World;
  /**
   * Called at least once with each event, and with those of one task in order. If it rejects, it is called again later. It may
   * return what to add to the store's totals: that counts once.
   */
  readonly onEvents: (events: readonly FeedEvent[]) => Promise<Readonly<Record<string, number>> | undefined>;
  /** Called after it was registered, and when events were missed: what happened since then must be looked for. */
  readonly onGap?: ((since: number) => Promise<void>) | undefined;
  readonly onError: (error: unknown) => void;
  /** Defaults to 15 s. */
  readonly leaseMs?: number | undefined;
  /** Defaults to 2 s. */
  readonly pollMs?: number | undefined;
}

const LEASE_MS = 15_000;
/** The process that holds parts looks this often, in case a hint was lost. The others wait for the end of its lease. */
const POLL_MS = 2_000;
const RETRY_MS = 5_000;
const PURGE_MS = 60_000;
const PAGE = 1_000;
/** After so many events the cursor moves, so that a crash repeats few. */
const CHUNK = 50;

/** Reads the feed of a store for one consumer, together with other processes. */
export class FeedConsumer implements AsyncDisposable {
  readonly #options: FeedConsumerOptions;
  readonly #reader: FeedReader;
  readonly #pollMs: number;
  /** The parts of which hints told; `undefined`: all are due. */
  #due: Set<number> | undefined = new Set();
  #watching: AsyncDisposable | undefined;
  #timer: Disposable | undefined;
  #round: Promise<void> | undefined;
  #isStopped = false;
  #purgedAt = -Infinity;

  constructor(options: FeedConsumerOptions) {
    const { consumer, leaseMs = LEASE_MS } = options;
    this.#options = options;
    this.#pollMs = options.pollMs ?? POLL_MS;
    this.#reader = { consumer, reader: crypto.randomUUID(), leaseMs };
  }

  /** Resolves when no event can be missed. */
  async start(): Promise<void> {
    // Who cannot register now, because a backup holds a lock, does so later.
    await this.#register().catch((error: unknown) => this.#options.onError(error));
    this.#watching = await this.#options.store.watch({ feed: this.#reader.consumer }, this.#handleHint);
    this.#schedule(undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    this.#timer?.[Symbol.dispose]();
    await this.#round;
    // Otherwise its lease runs out.
    if (this.#watching !== undefined) await this.#options.store.feed.leave(this.#reader).catch(() => {});
    await this.#watching?.[Symbol.asyncDispose]();
  }

  async #register(): Promise<void> {
    const { store, kinds } = this.#options;
    await store.feed.register({ consumer: this.#reader.consumer, kinds });
  }

  readonly #handleHint = (hint: Hint): void => this.#schedule(hint.type === 'feed' ? hint.part : undefined);

  #schedule(part: number | undefined): void {
    if (part === undefined) this.#due = undefined;
    else this.#due?.add(part);
    if (this.#round !== undefined || this.#isStopped) return;
    this.#timer?.[Symbol.dispose]();
    this.#round = this.#run().finally(() => (this.#round = undefined));
  }

  /** Reads until nothing is due, then waits. */
  async #run(): Promise<void> {
    let waitMs = this.#pollMs;
    try {
      while (!this.#isStopped && (this.#due === undefined || this.#due.size > 0)) {
        const parts = this.#due && [...this.#due];
        this.#due = new Set();
        waitMs = (await this.#readOnce(parts)) ?? waitMs;
      }
    } catch (error) {
      this.#options.onError(error);
      waitMs = RETRY_MS;
    }
    if (this.#isStopped) return;
    this.#timer = this.#options.world.clock.setTimer(waitMs, () => this.#schedule(undefined), { keepAlive: false });
  }

  /** Returns how long to wait then. */
  async #readOnce(parts: readonly number[] | undefined): Promise<number | undefined> {
    const { store, world, onGap } = this.#options;
    const taken = await store.feed.take(this.#reader, { limit: PAGE, ...(parts && { parts }) });
    if (taken.result === 'gone') {
      await this.#register();
      this.#due = undefined;
      return undefined;
    }
    const missed = taken.pages.flatMap(({ missedSince }) => missedSince ?? []);
    if (missed.length > 0) await onGap?.(Math.min(...missed));
    for (const page of taken.pages) if ((await this.#work(page)) || page.isFull) this.#due?.add(page.part);
    const { holds, heldUntil, now } = taken;
    if (parts !== undefined) return undefined;
    if (holds === 0) return Math.max(0, (heldUntil ?? now) - now) + this.#pollMs * world.random();
    if (world.clock.now() >= this.#purgedAt + PURGE_MS) {
      this.#purgedAt = world.clock.now();
      await store.feed.purge();
    }
    return this.#pollMs;
  }

  /** Returns whether the rest of the page must be read again. */
  async #work({ part, version, upTo, events, isFull }: FeedPage): Promise<boolean> {
    const { store, onEvents } = this.#options;
    let moves = version;
    for (let i = 0; i === 0 || i < events.length; i += CHUNK) {
      if (this.#isStopped) return false;
      const chunk = events.slice(i, i + CHUNK);
      const adds = chunk.length === 0 ? undefined : await onEvents(chunk.map(([, event]) => event));
      const isLast = i + CHUNK >= events.length && !isFull;
      const at = isLast ? undefined : chunk.at(-1)?.[0];
      const move = { part, version: moves, upTo, ...(at !== undefined && { at }), ...(adds && { adds }) };
      if ((await store.feed.move(this.#reader, [move])).length === 0) return true;
      moves++;
    }
    return false;
  }
}
