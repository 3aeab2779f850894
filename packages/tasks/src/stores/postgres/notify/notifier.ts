import { randomBytes } from 'node:crypto';
import type { Hint, WatchFilter } from '../../../store.ts';
import { settledWithin } from '../../settled-within.ts';
import { Batcher } from '../batcher.ts';
import type { Database, Ring } from '../connection/database.ts';
import { GOODBYE_MS } from '../connection/driver.ts';
import { hintOf, hintOfPayload, isRungAlready, payloadOf } from './hints.ts';
import { type Listener, type ListenerOptions, type Subscriber, shareListener } from './listener.ts';

export interface NotifierOptions extends ListenerOptions {
  readonly database: Database;
  readonly onHint: (hint: Hint) => void;
}

const RINGS_PER_FLUSH = 500;
/** Beyond these a ring is left out: whoever missed it finds out with the next beat or take. */
const MAX_RINGS_WAITING = 100_000;
/** Who listens to what is noted for so long, and again after a third of it. */
const NOTED_MS = 180_000;
/** So many names are noted or forgotten at once. */
const MAX_NAMES = 1_000;

/**
 * How a store tells of changes, after they were committed, and hears of those of others. What it listens to stands in the
 * database, so only those are rung who want to know. Each store has a channel that cannot be guessed; what concerns itself
 * needs no ring.
 */
export class ChangeNotifier implements AsyncDisposable {
  readonly #options: NotifierOptions;
  /** Under which this store is rung. */
  readonly channel: string = `whoa_${randomBytes(12).toString('hex')}`;
  readonly #names = new Map<string, number>();
  readonly #subscriber: Subscriber;
  /** One at a time, in order: a name that is left and wanted again must not be forgotten after it was noted. */
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

  /** Resolves when it hears of everything the filter may want; returns how to leave. */
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

  /** Rings for what was committed, unless the database has. Does not wait. */
  ring(rings: readonly Ring[] | null, { isRung = false }: { readonly isRung?: boolean } = {}): void {
    for (const [channel, hint] of rings ?? []) {
      if (channel === this.channel) {
        this.#options.onHint(hintOf(hint));
      } else if (isRung && isRungAlready(hint)) {
      } else if (this.#rings.size < MAX_RINGS_WAITING) {
        const payload = payloadOf(hint);
        this.#rings.set(`${channel}${payload}`, [channel, payload]);
      }
    }
    if (this.#rings.size > 0) this.#flushing ??= this.#flush().finally(() => (this.#flushing = undefined));
  }

  /** A server that does not answer is not waited for: what it was not told, it forgets by itself. */
  async [Symbol.asyncDispose](): Promise<void> {
    const names = [...this.#names.keys()];
    this.#names.clear();
    const goodbye = (async () => {
      await this.#flushing;
      await this.#stopListening();
      await Promise.all(names.map((name) => this.#forgetSoon(name)));
    })();
    await settledWithin(goodbye, GOODBYE_MS);
  }

  /** One at a time: what is to be rung meanwhile goes with the next. */
  async #flush(): Promise<void> {
    while (this.#rings.size > 0) {
      const rings = [...this.#rings].slice(0, RINGS_PER_FLUSH);
      for (const [key] of rings) this.#rings.delete(key);
      const values = [rings.map(([, [channel]]) => channel), rings.map(([, [, payload]]) => payload)];
      try {
        await this.#options.database.ask({ operation: 'ring', changes: false, name: 'ring', values });
      } catch {
        // A hint that is lost. Whoever should have heard it finds out with the next beat or take.
      }
    }
  }

  /** Notes the names that are listened to now, and forgets the others. */
  async #noteChanges(names: readonly string[]): Promise<undefined[]> {
    const left = names.filter((name) => !this.#names.has(name));
    const wanted = names.filter((name) => this.#names.has(name));
    const values = [left, this.channel];
    if (left.length > 0)
      await this.#options.database.ask({ operation: 'watch', changes: false, name: 'unlisten', values });
    if (wanted.length > 0) await this.#note(wanted);
    return names.map(() => undefined);
  }

  async #note(names: readonly string[]): Promise<void> {
    const values = [names, this.channel, NOTED_MS];
    await this.#options.database.ask({ operation: 'watch', changes: false, name: 'listen', values });
  }

  /** If it cannot be done, it is forgotten by itself after a while. */
  async #forgetSoon(name: string): Promise<void> {
    await this.#changes.ask(name).catch(() => {});
  }

  #noteAgain(): void {
    this.#noting ??= this.#options.clock.setTimer(
      NOTED_MS / 3,
      () => {
        this.#noting = undefined;
        if (this.#names.size === 0) return;
        this.#noteAgain();
        // If it cannot be done now, the next one is in time.
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

/** What stands in the database for what is watched; the most telling part of it. */
function nameOf({ id, worker, tenant }: WatchFilter): string {
  if (id !== undefined) return `i:${id}`;
  if (worker !== undefined) return `w:${worker}`;
  return tenant === undefined ? '*' : `t:${tenant}`;
}
