import { randomBytes } from 'node:crypto';
import { waitAtMost } from '@whoa/core/internal';
import type { Hint, WatchFilter } from '../../../store.ts';
import { Batcher } from '../batcher.ts';
import type { Database, Notification } from '../connection/database.ts';
import { CLOSE_TIMEOUT_MS } from '../connection/driver.ts';
import { hintOfPayload, toHint, toPayload } from './hints.ts';
import { type Listener, type ListenerOptions, type Subscriber, shareListener } from './listener.ts';

export interface NotifierOptions extends ListenerOptions {
  readonly database: Database;
  readonly onHint: (hint: Hint) => void;
}

const NOTIFICATIONS_PER_FLUSH = 500;
/** Beyond this many, notifications are dropped: receivers find the change with the next beat or take. */
const MAX_PENDING_NOTIFICATIONS = 100_000;
/** How long a subscription is recorded. It is renewed after a third of this. */
const SUBSCRIPTION_TTL_MS = 180_000;
/** The maximum number of names that are recorded or removed in one statement. */
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
    ask: (names) => this.#subscribeChanges(names),
    maxSize: MAX_NAMES,
    maxInFlight: 1,
  });
  #listener: Listener | undefined;
  #renewal: Disposable | undefined;
  #notifications = new Map<string, readonly [channel: string, payload: string]>();
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
    const name = toChannelName(filter);
    this.#names.set(name, (this.#names.get(name) ?? 0) + 1);
    try {
      this.#listener ??= shareListener(this.#options);
      await this.#listener.subscribe(this.channel, this.#subscriber);
      await this.#changes.ask(name);
    } catch (error) {
      await this.#leave(name);
      throw error;
    }
    this.#scheduleRenewal();
    return () => this.#leave(name);
  }

  /** Notifies of committed changes. Does not wait. */
  notify(notifications: readonly Notification[] | null): void {
    for (const [channel, hint] of notifications ?? []) {
      if (channel === this.channel) {
        this.#options.onHint(toHint(hint));
      } else if (this.#notifications.size < MAX_PENDING_NOTIFICATIONS) {
        const payload = toPayload(hint);
        this.#notifications.set(`${channel}${payload}`, [channel, payload]);
      }
    }
    if (this.#notifications.size > 0) this.#flushing ??= this.#flush().finally(() => (this.#flushing = undefined));
  }

  /** Doesn't wait for a server that does not respond: unrenewed subscriptions expire. */
  async [Symbol.asyncDispose](): Promise<void> {
    const names = [...this.#names.keys()];
    this.#names.clear();
    const goodbye = (async () => {
      await this.#flushing;
      await this.#stopListening();
      await Promise.all(names.map((name) => this.#unlisten(name)));
    })();
    await waitAtMost(goodbye, CLOSE_TIMEOUT_MS);
  }

  /** One at a time: notifications that arrive meanwhile go with the next. */
  async #flush(): Promise<void> {
    while (this.#notifications.size > 0) {
      const notifications = [...this.#notifications].slice(0, NOTIFICATIONS_PER_FLUSH);
      for (const [key] of notifications) this.#notifications.delete(key);
      const all = [...notifications.values()].map(([, notification]) => notification);
      const values = { channels: all.map(([channel]) => channel), payloads: all.map(([, payload]) => payload) };
      try {
        await this.#options.database.ask({ operation: 'notify', changes: false, name: 'notify_all', values });
      } catch {
        // A hint was lost. Its receivers find the change with the next beat or take.
      }
    }
  }

  /** Records the names that are listened to now, and removes the others. */
  async #subscribeChanges(names: readonly string[]): Promise<undefined[]> {
    const left = names.filter((name) => !this.#names.has(name));
    const wanted = names.filter((name) => this.#names.has(name));
    const values = { names: left, of_channel: this.channel };
    if (left.length > 0)
      await this.#options.database.ask({ operation: 'watch', changes: false, name: 'unlisten', values });
    if (wanted.length > 0) await this.#subscribe(wanted);
    return names.map(() => undefined);
  }

  async #subscribe(names: readonly string[]): Promise<void> {
    const values = { names, of_channel: this.channel, for_ms: SUBSCRIPTION_TTL_MS };
    await this.#options.database.ask({ operation: 'watch', changes: false, name: 'listen', values });
  }

  /** If this fails, the subscription expires after a while. */
  async #unlisten(name: string): Promise<void> {
    await this.#changes.ask(name).catch(() => {});
  }

  #scheduleRenewal(): void {
    this.#renewal ??= this.#options.clock.setTimer(
      SUBSCRIPTION_TTL_MS / 3,
      () => {
        this.#renewal = undefined;
        if (this.#names.size === 0) return;
        this.#scheduleRenewal();
        // If this fails, the next renewal is in time.
        this.#subscribe([...this.#names.keys()]).catch(() => {});
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
    await this.#unlisten(name);
  }

  async #stopListening(): Promise<void> {
    this.#renewal?.[Symbol.dispose]();
    this.#renewal = undefined;
    const listener = this.#listener;
    this.#listener = undefined;
    await listener?.unsubscribe(this.channel, this.#subscriber);
  }
}

/** Returns the recorded name of a filter: its most selective field. */
function toChannelName({ id, worker, tenant }: WatchFilter): string {
  if (id !== undefined) return `i:${id}`;
  if (worker !== undefined) return `w:${worker}`;
  return tenant === undefined ? '*' : `t:${tenant}`;
}
