import { systemClock } from '@whoa/core/embed';
import { waitAtMost } from '@whoa/core/internal';
import type { WordSource } from '../delivery/worker-store.ts';
import type { Hint, WatchFilter } from '../store.ts';
import { Batcher } from './batcher.ts';
import type { Bus } from './bus.ts';
import { decodeHints, Outbox } from './outbox.ts';
import { Watchers } from './watchers.ts';

/** How the store records what processes want to hear of. */
interface Interests {
  /** Renews an inbox and adds interests to it. Returns whether it was there before: otherwise it has lost the others. */
  express(inbox: string, names: readonly string[], forMs: number): Promise<Expressed>;
  withdraw(inbox: string, names: readonly string[]): Promise<unknown>;
}

export interface Expressed {
  readonly isKnown: boolean;
  /** How many inboxes there are. */
  readonly inboxes: number;
  /** The workers of the tasks that are read from now on. */
  readonly workers: readonly (readonly [inbox: string, id: string, tenant: string, worker: string])[];
}

interface NotifierOptions {
  readonly bus: Bus;
  /** Which bus it is: all processes of a store must use the same. */
  readonly kind: string;
  /** The shortest time between two messages to a process, by the number of inboxes. */
  readonly pulseMs?: ((inboxes: number) => number) | undefined;
  readonly interests: Interests;
}

/** How long an inbox is kept in the store, and how often it is renewed. */
const INBOX_TTL_MS = 30_000;
const RENEWAL_MS = 10_000;
/** How long a watch waits for a bus that is away. Changes are found late until it is back. */
const BUS_TIMEOUT_MS = 1_000;
const CLOSE_TIMEOUT_MS = 1_000;
const MAX_NAMES = 1_000;
/** Not a name: the inbox itself is renewed. */
const RENEWAL = '';
const WORDS = 'r:';

/**
 * Notifies other processes of changes after their commit, and receives their notifications. What a process wants to hear of
 * is in the store, so only those who want a change are notified. Its own changes need no bus.
 */
export class ChangeNotifier implements AsyncDisposable {
  /** The inbox of this process as the store knows it. */
  readonly inbox: string;
  readonly #options: NotifierOptions;
  readonly #watchers = new Watchers();
  readonly #outbox: Outbox;
  readonly #names = new Map<string, number>();
  readonly #words = new Set<WordSource>();
  readonly #gaps: Disposable;
  /** One at a time, in order: a name that is removed and added again must not be removed last. */
  readonly #changes: Batcher<string, undefined>;
  #receiving: Promise<void> | undefined;
  #reception: Promise<Disposable> | undefined;
  #renewal: Disposable | undefined;
  #hasWarned = false;

  constructor(options: NotifierOptions) {
    this.#options = options;
    this.#outbox = new Outbox(options.bus, { onPulse: () => this.#collectWords() });
    this.inbox = `${options.kind}:${options.bus.inbox}`;
    this.#gaps = options.bus.onGap(() => this.#handleGap());
    const ask = (names: readonly string[]): Promise<undefined[]> => this.#change(names);
    this.#changes = new Batcher({ ask, maxSize: MAX_NAMES, maxInFlight: 1 });
  }

  /** Resolves when the store knows that this process wants what matches, and the bus listens or is away. */
  async watch(filter: WatchFilter, listener: (hint: Hint) => void): Promise<AsyncDisposable> {
    const watcher = this.#watchers.add(filter, listener);
    // They concern this process alone.
    if (filter.offers === true) return watcher;
    const name = toInterest(filter);
    this.#names.set(name, (this.#names.get(name) ?? 0) + 1);
    let hasLeft = false;
    const leave = async (): Promise<void> => {
      if (hasLeft) return;
      hasLeft = true;
      await watcher[Symbol.asyncDispose]();
      await this.#leave(name);
    };
    try {
      await (this.#receiving ??= this.#receive());
      await this.#changes.ask(name);
    } catch (error) {
      await leave();
      throw error;
    }
    this.#renewLater();
    return { [Symbol.asyncDispose]: leave };
  }

  /** Notifies of committed changes. Does not wait. Offers are for this process. */
  notify(inbox: string, hint: Hint): void {
    const { kind } = this.#options;
    if (inbox === this.inbox || hint.type === 'offer') this.#watchers.notify(hint);
    else if (inbox.startsWith(`${kind}:`)) this.#outbox.add(inbox.slice(kind.length + 1), hint);
    else this.#warn(kind, inbox);
  }

  /** Takes the words when the next message leaves. */
  show(words: WordSource): void {
    this.#words.add(words);
    this.#outbox.schedule();
  }

  #collectWords(): boolean {
    const sources = [...this.#words];
    this.#words.clear();
    for (const words of sources) {
      const hint = words.next();
      if (hint !== undefined) for (const reader of words.readers()) this.notify(reader, hint);
    }
    return sources.length > 0;
  }

  #warn(kind: string, inbox: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const other = inbox.slice(0, inbox.indexOf(':'));
    process.emitWarning(
      `A process of this store uses the bus '${other}', this one '${kind}': they hear of each other's changes late. Configure the same bus everywhere`,
    );
  }

  /** Doesn't wait for a store that does not respond: an inbox that is not renewed expires. */
  async [Symbol.asyncDispose](): Promise<void> {
    const names = [...this.#names.keys()];
    this.#names.clear();
    this.#watchers.clear();
    this.#outbox[Symbol.dispose]();
    this.#gaps[Symbol.dispose]();
    this.#stopReceiving();
    await waitAtMost(Promise.all(names.map((name) => this.#withdraw(name))), CLOSE_TIMEOUT_MS);
    await waitAtMost(this.#options.bus[Symbol.asyncDispose](), CLOSE_TIMEOUT_MS);
  }

  /** A bus that comes back after this reports a gap. */
  async #receive(): Promise<void> {
    let isLate = false;
    this.#reception = this.#options.bus.receive((message) => {
      for (const hint of decodeHints(message)) this.#watchers.notify(hint);
    });
    const listening = this.#reception.then(() => isLate && this.#handleGap());
    await waitAtMost(listening, BUS_TIMEOUT_MS);
    isLate = true;
  }

  /** What was said meanwhile is written as soon as its worker knows again that it is read. */
  #handleGap(): void {
    const read = [...this.#names.keys()].filter((name) => name.startsWith(WORDS));
    const resync = (): void => this.#watchers.notify({ type: 'resync' });
    Promise.all(read.map((name) => this.#changes.ask(name))).then(resync, resync);
  }

  /** Records the interests that this process has now, and removes the others. */
  async #change(names: readonly string[]): Promise<undefined[]> {
    const { interests } = this.#options;
    const wanted = names.filter((name) => this.#names.has(name));
    const left = names.filter((name) => !this.#names.has(name) && name !== RENEWAL);
    if (left.length > 0) await interests.withdraw(this.inbox, left);
    if (wanted.length > 0 || names.includes(RENEWAL)) await this.#express(wanted);
    return names.map(() => undefined);
  }

  /** After an inbox was lost, everything is written again first: changes in between were sent to no one. */
  async #express(names: readonly string[]): Promise<void> {
    const { interests } = this.#options;
    const { isKnown, inboxes, workers } = await interests.express(this.inbox, names, INBOX_TTL_MS);
    this.#outbox.pulseMs = this.#options.pulseMs?.(inboxes);
    for (const [inbox, id, tenant, worker] of workers)
      this.notify(inbox, { type: 'watched', id, tenant, worker, reader: this.inbox });
    const others = [...this.#names.keys()].filter((name) => !names.includes(name));
    if (isKnown || others.length === 0) return;
    for (let i = 0; i < others.length; i += MAX_NAMES)
      await interests.express(this.inbox, others.slice(i, i + MAX_NAMES), INBOX_TTL_MS);
    this.#handleGap();
  }

  async #leave(name: string): Promise<void> {
    const left = (this.#names.get(name) ?? 0) - 1;
    if (left > 0) return void this.#names.set(name, left);
    if (!this.#names.delete(name)) return;
    if (this.#names.size === 0) this.#stopReceiving();
    await this.#withdraw(name);
  }

  /** If this fails, the interest goes with its inbox. */
  async #withdraw(name: string): Promise<void> {
    await this.#changes.ask(name).catch(() => {});
  }

  #stopReceiving(): void {
    this.#renewal?.[Symbol.dispose]();
    this.#renewal = undefined;
    this.#receiving = undefined;
    this.#reception?.then(
      (receiving) => receiving[Symbol.dispose](),
      () => {},
    );
    this.#reception = undefined;
  }

  #renewLater(): void {
    this.#renewal ??= systemClock.setTimer(RENEWAL_MS, () => this.#renew(), { keepAlive: false });
  }

  #renew(): void {
    this.#renewal = undefined;
    if (this.#names.size === 0) return;
    // If the store is away, the next renewal finds out whether the inbox is still there.
    this.#changes.ask(RENEWAL).then(
      () => this.#renewLater(),
      () => this.#renewLater(),
    );
  }
}

/**
 * Returns the interest of a filter: its most selective field. A worker is named like any other interest, and not by the inbox
 * of its session: it listens before it has a session, and a task may prefer a worker that has none.
 */
function toInterest({ id, worker, conversation, tenant, words, feed }: WatchFilter): string {
  if (feed !== undefined) return `f:${feed}`;
  if (words === true) return `${WORDS}${tenant}/${id}`;
  if (id !== undefined) return `i:${id}`;
  if (worker !== undefined) return `w:${worker}`;
  if (tenant === undefined) return '*';
  return conversation === undefined ? `t:${tenant}` : `c:${tenant}/${conversation}`;
}
