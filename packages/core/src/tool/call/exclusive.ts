import type { CancellationToken } from '../../stop/token/token.ts';
import { waitUntilLevel } from '../../stop/wait.ts';

/** How long a call waits for a key that an earlier call still holds. */
const EXCLUSIVE_WAIT_MS = 60_000;

interface Holder {
  readonly holder: string;
  readonly released: Promise<void>;
}

/** Keys that only one call may hold. An abandoned call keeps its keys until it really ends. */
export class ExclusiveKeys {
  readonly #holders = new Map<string, Holder>();
  /** Holds the keys that were not lent. */
  #lender: ExclusiveKeys | undefined;
  #lent: ReadonlySet<string> | undefined;

  /** Returns keys for the calls inside a call: they may take those that the call holds; all others are shared. */
  lend(keys: readonly string[]): ExclusiveKeys {
    const lent = new ExclusiveKeys();
    lent.#lender = this;
    lent.#lent = new Set(keys);
    return lent;
  }

  /** Settles when none of the lent keys is held. */
  get returned(): Promise<void> | undefined {
    const holder = this.#holders.values().next().value;
    return holder?.released.then(() => this.returned);
  }

  /** Takes all keys or none. Returns the release function, who held one for too long, or `undefined` if cancelled. */
  async acquire(
    keys: readonly string[],
    options: { holder: string; token: CancellationToken },
  ): Promise<(() => void) | { readonly heldBy: string } | undefined> {
    const limit = options.token.child('exclusive keys');
    limit.cancelAfter(EXCLUSIVE_WAIT_MS, { kind: 'deadline' });
    try {
      for (let busy = this.#busy(keys); busy !== undefined; busy = this.#busy(keys)) {
        const end = await waitUntilLevel(busy.released, limit, 'drain');
        if (end.by === 'level') return options.token.isCancelled ? undefined : { heldBy: busy.holder };
      }
    } finally {
      limit[Symbol.dispose]();
    }
    // Don't await between the last check and here: all keys are taken in one step, so two calls cannot deadlock.
    return this.#take(keys, options.holder);
  }

  #busy(keys: readonly string[]): Holder | undefined {
    for (const key of keys) {
      const holder = this.#getHolders(key).get(key);
      if (holder !== undefined) return holder;
    }
    return undefined;
  }

  #take(keys: readonly string[], holder: string): () => void {
    const { promise: released, resolve } = Promise.withResolvers<void>();
    const mine = { holder, released };
    for (const key of keys) this.#getHolders(key).set(key, mine);
    return () => {
      for (const key of keys) if (this.#getHolders(key).get(key) === mine) this.#getHolders(key).delete(key);
      resolve();
    };
  }

  #getHolders(key: string): Map<string, Holder> {
    return this.#lender === undefined || this.#lent?.has(key) ? this.#holders : this.#lender.#getHolders(key);
  }
}
