import { randomBytes } from 'node:crypto';
import { waitAtMost } from '@whoa/core/internal';
import type { Hint, WatchFilter } from '../../../store.ts';
import { Batcher } from '../batcher.ts';
import type { Database, Ring } from '../connection/database.ts';
import { CLOSE_TIMEOUT_MS } from '../connection/driver.ts';
import { hintOf, hintOfPayload, payloadOf } from './hints.ts';
import { type Listener, type ListenerOptions, type Subscriber, shareListener } from './listener.ts';

export interface NotifierOptions extends ListenerOptions {
  readonly database: Database;
  readonly onHint: (hint: Hint) => void;
}

const NOTIFICATIONS_PER_FLUSH = 500;
/** Beyond this many, notifications are dropped: receivers find the change with the next beat or take. */
const MAX_RINGS_WAITING = 100_000;
/** How long a subscription is recorded. It is renewed after a third of this. */
const SUBSCRIPTION_TTL_MS = 180_000;
/** The maximum number of names that are recorded or removed at once. */
const MAX_NAMES = 1_000;

/**
 * Notifies other stores of changes after their commit, and receives their notifications. Subscriptions are recorded in
 * the database, so only interested stores are notified. Each store has a random channel name that cannot be guessed;
 * its own changes need no notification.
 */
export class ChangeNotifier implements AsyncDisposable {
  readonly #options: NotifierOptions;
  /** The channel on which this store is notified. */
  readonly channel: string = `whoa_${randomBytes(12).toString('hex')}`;
  readonly #names = new Map<string, number>();
  readonly #subscriber: Subscriber;
  /** One at a time, in order: a name that is removed and added again must not be removed last. */
  readonly #changes: Batcher<string, undefined> = new Batcher({
    ask: (names) => this.#noteChanges(names),
    maxSize: MAX_NAMES,
    maxInFlight: 1,
  });
  #listener: Listener | undefined;
  #noting: Disposable | undefined;
  #rings = new Map<string, readonly [channel: string, payload: string]>();
  #flushing: Promise<void> | undefined;

  constructor(options: NotifierOptions) {
    this.#options = options;
    this.#subscriber = {
      onNotification: (_channel, payload) => {
        const hint = hintOfPayload(payload);
        if (hint !== undefined) options.onHint(hint);
      },
      onGap: () => options.onHint({ type: 'resync' }),
    };
  }

  /** Resolves when it receives everything that matches the filter. Returns the function that ends the watch. */
  async watch(filter: WatchFilter): Promise<() => Promise<void>> {
    const name = nameOf(filter);
    this.#names.set(name, (this.#names.get(name) ?? 0) + 1);
    try {
      this.#listener ??= shareListener(this.#options);
      await this.#listener.subscribe(this.channel, this.#subscriber);
      await this.#changes.ask(name);
    } catch (error) {
      await this.#leave(name);
      throw error;
    }
    this.#noteAgain();
    return () => this.#leave(name);
  }

  /** Notifies of committed changes. Does not wait. */
  ring(rings: readonly Ring[] | null): void {
    for (const [channel, hint] of rings ?? []) {
      if (channel === this.channel) {
        this.#options.onHint(hintOf(hint));
      } else if (this.#rings.size < MAX_RINGS_WAITING) {
        const payload = payloadOf(hint);
        this.#rings.set(`${channel}${payload}`, [channel, payload]);
      }
    }
    if (this.#rings.size > 0) this.#flushing ??= this.#flush().finally(() => (this.#flushing = undefined));
  }

  /** Doesn't wait for a server that does not respond: unrenewed subscriptions expire. */
  async [Symbol.asyncDispose](): Promise<void> {
    const names = [...this.#names.keys()];
    this.#names.clear();
    const goodbye = (async () => {
      await this.#flushing;
      await this.#stopListening();
      await Promise.all(names.map((name) => this.#forgetSoon(name)));
    })();
    await waitAtMost(goodbye, CLOSE_TIMEOUT_MS);
  }

  /** One at a time: notifications that arrive meanwhile go with the next. */
  async #flush(): Promise<void> {
    while (this.#rings.size > 0) {
      const rings = [...this.#rings].slice(0, NOTIFICATIONS_PER_FLUSH);
      for (const [key] of rings) this.#rings.delete(key);
      const all = [...rings.values()].map(([, ring]) => ring);
      const values = { channels: all.map(([channel]) => channel), payloads: all.map(([, payload]) => payload) };
      try {
        await this.#options.database.ask({ operation: 'ring', changes: false, name: 'ring', values });
      } catch {
        // A hint was lost. Its receivers find the change with the next beat or take.
      }
    }
  }

  /** Records the names that are listened to now, and removes the others. */
  async #noteChanges(names: readonly string[]): Promise<undefined[]> {
    const left = names.filter((name) => !this.#names.has(name));
    const wanted = names.filter((name) => this.#names.has(name));
    const values = { names: left, of_channel: this.channel };
    if (left.length > 0)
      await this.#options.database.ask({ operation: 'watch', changes: false, name: 'unlisten', values });
    if (wanted.length > 0) await this.#note(wanted);
    return names.map(() => undefined);
  }

  async #note(names: readonly string[]): Promise<void> {
    const values = { names, of_channel: this.channel, for_ms: SUBSCRIPTION_TTL_MS };
    await this.#options.database.ask({ operation: 'watch', changes: false, name: 'listen', values });
  }

  /** If this fails, the subscription expires after a while. */
  async #forgetSoon(name: string): Promise<void> {
    await this.#changes.ask(name).catch(() => {});
  }

  #noteAgain(): void {
    this.#noting ??= this.#options.clock.setTimer(
      SUBSCRIPTION_TTL_MS / 3,
      () => {
        this.#noting = undefined;
        if (this.#names.size === 0) return;
        this.#noteAgain();
        // If this fails, the next renewal is in time.
        this.#note([...this.#names.keys()]).catch(() => {});
      },
      { keepAlive: false },
    );
  }

  async #leave(name: string): Promise<void> {
    const left = (this.#names.get(name) ?? 0) - 1;
    if (left > 0) {
      this.#names.set(name, left);
      return;
    }
    if (!this.#names.delete(name)) return;
    if (this.#names.size === 0) await this.#stopListening();
    await this.#forgetSoon(name);
  }

  async #stopListening(): Promise<void> {
    this.#noting?.[Symbol.dispose]();
    this.#noting = undefined;
    const listener = this.#listener;
    this.#listener = undefined;
    await listener?.unsubscribe(this.channel, this.#subscriber);
  }
}

/** Returns the recorded name of a filter: its most selective field. */
function nameOf({ id, worker, tenant }: WatchFilter): string {
  if (id !== undefined) return `i:${id}`;
  if (worker !== undefined) return `w:${worker}`;
  return tenant === undefined ? '*' : `t:${tenant}`;
}
