import type { WorkerContext } from '../worker-context.ts';

/** Frees the tasks of workers that are gone, and removes records past their retention. */
export class Sweeper {
  readonly #context: WorkerContext;
  /** Tasks became ready again. */
  readonly #onFreed: (domain: number) => void;
  readonly #sweeping = new Set<number>();

  constructor(context: WorkerContext, onFreed: (domain: number) => void) {
    this.#context = context;
    this.#onFreed = onFreed;
  }

  /** Sweeps a domain because the store asked for it: also removes all that is past its retention. */
  sweepSoon(domain: number): void {
    this.#context.background(this.sweep(domain, true));
  }

  /** Frees the tasks of a domain, unless a sweep is in progress. */
  async sweep(domain: number, isAsked = false): Promise<void> {
    const { store, shutdown } = this.#context;
    if (this.#sweeping.has(domain)) return;
    this.#sweeping.add(domain);
    try {
      for (let more = true; more && !shutdown.isCancelled; ) {
        const swept = await store.sweep({ domain });
        more = swept.hasMore && (swept.reclaimed > 0 || isAsked);
        // Don't wait for a hint: the store may send it to the worker that is gone.
        if (swept.reclaimed > 0) this.#onFreed(domain);
      }
    } finally {
      this.#sweeping.delete(domain);
    }
  }
}
