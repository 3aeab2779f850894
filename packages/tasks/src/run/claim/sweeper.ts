import type { TaskStore } from '../../store.ts';

export interface SweeperOptions {
  readonly store: TaskStore;
  readonly isOver: () => boolean;
  /** Tasks became ready again. */
  readonly onFreed: (domain: number) => void;
}

/** Frees the tasks of workers that are gone, and removes records past their retention. */
export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #sweeping = new Set<number>();

  constructor(options: SweeperOptions) {
    this.#options = options;
  }

  /** Frees the tasks of a domain, unless a sweep is in progress. `isAsked`: also removes all that the store asks for. */
  async sweep(domain: number, isAsked = false): Promise<void> {
    const { store, isOver, onFreed } = this.#options;
    if (this.#sweeping.has(domain)) return;
    this.#sweeping.add(domain);
    try {
      for (let more = true; more && !isOver(); ) {
        const swept = await store.sweep({ domain });
        more = swept.more && (swept.freed > 0 || isAsked);
        // Don't wait for a hint: the store may send it to the worker that is gone.
        if (swept.freed > 0) onFreed(domain);
      }
    } finally {
      this.#sweeping.delete(domain);
    }
  }
}
