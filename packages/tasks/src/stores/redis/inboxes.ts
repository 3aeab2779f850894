import type { Hint, WatchFilter } from '../../store.ts';
import type { Calls } from './calls.ts';
import { Inbox } from './inbox.ts';
import type { RedisStoreOptions } from './options.ts';
import type { SealOf } from './seal.ts';

interface InboxesOptions {
  readonly store: RedisStoreOptions;
  readonly calls: Calls;
  readonly sealOf: SealOf;
  readonly tags: readonly string[];
  readonly common: () => readonly (string | number)[];
}

/** The streams that somebody in this process listens to: that of a worker, or that of everything. */
export class Inboxes implements AsyncDisposable {
  readonly #options: InboxesOptions;
  readonly #open = new Map<string, { users: number; opened: Promise<readonly Inbox[]> }>();

  constructor(options: InboxesOptions) {
    this.#options = options;
  }

  async watch(filter: WatchFilter, listener: (hint: Hint) => void): Promise<AsyncDisposable> {
    const name = filter.worker === undefined ? 'changes' : `inbox:${filter.worker}`;
    const entry = this.#open.get(name) ?? { users: 0, opened: this.#openAll(name) };
    this.#open.set(name, entry);
    entry.users++;
    const leave = async (): Promise<void> => {
      if (--entry.users > 0) return;
      if (this.#open.get(name) === entry) this.#open.delete(name);
      await close(await entry.opened.catch(() => []));
    };
    try {
      const watching = (await entry.opened).map((inbox) => inbox.add(filter, listener));
      let left = false;
      return {
        async [Symbol.asyncDispose]() {
          if (left) return;
          left = true;
          await Promise.all(watching.map((one) => one[Symbol.asyncDispose]()));
          await leave();
        },
      };
    } catch (error) {
      await leave();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const open = [...this.#open.values()];
    this.#open.clear();
    await Promise.all(open.map(async ({ opened }) => close(await opened.catch(() => []))));
  }

  /** One connection for all shards of a server; on a Cluster each shard may be elsewhere, so each has its own. */
  async #openAll(name: string): Promise<readonly Inbox[]> {
    const { tags, ...shared } = this.#options;
    const places = shared.store.cluster ? tags.map((tag) => [tag]) : [tags];
    const inboxes = places.map((place) => new Inbox({ ...shared, tags: place, name }));
    try {
      await Promise.all(inboxes.map((inbox) => inbox.open()));
    } catch (error) {
      await close(inboxes);
      throw error;
    }
    return inboxes;
  }
}

async function close(inboxes: readonly Inbox[]): Promise<void> {
  await Promise.all(inboxes.map((inbox) => inbox[Symbol.asyncDispose]()));
}
