import type { TaskStore } from '../../store.ts';

export interface SweeperOptions {
  readonly store: TaskStore;
  readonly isOver: () => boolean;
  /** Something is ready again. */
  readonly onFreed: (domain: number) => void;
}

/** Frees what workers left that are gone. */
export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #sweeping = new Set<number>();

  constructor(options: SweeperOptions) {
    this.#options = options;
  }

  /** Until nothing is left, unless that is being done. */
  async sweep(domain: number): Promise<void> {
    const { store, isOver, onFreed } = this.#options;
    if (this.#sweeping.has(domain)) return;
    this.#sweeping.add(domain);
    try {
      for (let more = true; more && !isOver(); ) {
        const swept = await store.sweep({ domain });
        more = swept.more;
        // Don't wait to be rung: the store may ring the very worker that is gone.
        if (swept.freed > 0) onFreed(domain);
      }
    } finally {
      this.#sweeping.delete(domain);
    }
  }
}
