import type { CancellationToken } from '../stop/token.ts';
import { waitUnder } from '../stop/wait.ts';

/** How long a call waits for a key that an earlier call still holds. */
const EXCLUSIVE_WAIT_MS = 60_000;

/** Keys that only one call may hold. An abandoned call keeps its keys until it really ends. */
export class ExclusiveKeys {
  readonly #holders = new Map<string, { readonly holder: string; readonly released: Promise<void> }>();

  /** Takes all keys or none. Answers the release function, or who held a key for too long, or `undefined` if cancelled. */
  async acquire(
    keys: readonly string[],
    options: { holder: string; token: CancellationToken },
  ): Promise<(() => void) | { readonly heldBy: string } | undefined> {
    const limit = options.token.child('exclusive keys');
    limit.cancelAfter(EXCLUSIVE_WAIT_MS, { kind: 'deadline' });
    try {
      for (let busy = this.#busy(keys); busy !== undefined; busy = this.#busy(keys)) {
        const end = await waitUnder(busy.released, limit, 'drain');
        if (end.by === 'level') return options.token.isCancelled ? undefined : { heldBy: busy.holder };
      }
    } finally {
      limit[Symbol.dispose]();
    }
    // No await between the last look and here: all keys are taken in one step, so two calls cannot deadlock.
    return this.#take(keys, options.holder);
  }

  #busy(keys: readonly string[]): { holder: string; released: Promise<void> } | undefined {
    for (const key of keys) {
      const holder = this.#holders.get(key);
      if (holder !== undefined) return holder;
    }
    return undefined;
  }

  #take(keys: readonly string[], holder: string): () => void {
    const { promise: released, resolve } = Promise.withResolvers<void>();
    const mine = { holder, released };
    for (const key of keys) this.#holders.set(key, mine);
    return () => {
      for (const key of keys) if (this.#holders.get(key) === mine) this.#holders.delete(key);
      resolve();
    };
  }
}
