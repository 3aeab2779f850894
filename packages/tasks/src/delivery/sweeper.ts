import type { WorkerContext } from './worker-context.ts';

/** Frees the tasks of workers that are gone, and removes records past their retention. */
export class Sweeper {
  readonly #context: WorkerContext;
  /** Tasks became ready again. */
  readonly #onFreed: () => void;
  #isSweeping = false;

  constructor(context: WorkerContext, onFreed: () => void) {
    this.#context = context;
    this.#onFreed = onFreed;
  }

  /** Sweeps because the store asked for it: also removes all that is past its retention. */
  sweepSoon(): void {
    this.#context.background(this.sweep(true));
  }

  /** Frees tasks, unless a sweep is in progress. */
  async sweep(isAsked = false): Promise<void> {
    const { store, shutdown } = this.#context;
    if (this.#isSweeping) return;
    this.#isSweeping = true;
    try {
      for (let more = true; more && !shutdown.isCancelled; ) {
        const swept = await store.sweep();
        more = swept.hasMore && (swept.reclaimed > 0 || isAsked);
        // Don't wait for a hint: the store may send it to the worker that is gone.
        if (swept.reclaimed > 0) this.#onFreed();
      }
    } finally {
      this.#isSweeping = false;
    }
  }
}
