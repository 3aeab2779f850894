import type { Hint, WatchFilter } from '../store.ts';

/** Who wants to hear of what, in this process. */
export class Watchers {
  readonly #watchers = new Set<{ filter: WatchFilter; listener: (hint: Hint) => void }>();

  get size(): number {
    return this.#watchers.size;
  }

  add(filter: WatchFilter, listener: (hint: Hint) => void): AsyncDisposable {
    const watcher = { filter, listener };
    this.#watchers.add(watcher);
    return {
      [Symbol.asyncDispose]: () => {
        this.#watchers.delete(watcher);
        return Promise.resolve();
      },
    };
  }

  /** A listener that throws harms nobody else. */
  tell(hint: Hint): void {
    for (const { filter, listener } of this.#watchers) {
      if (!matches(filter, hint)) continue;
      try {
        listener(hint);
      } catch (error) {
        process.emitWarning(new Error('A listener given to watch() failed', { cause: error }));
      }
    }
  }

  clear(): void {
    this.#watchers.clear();
  }
}

function matches(filter: WatchFilter, hint: Hint): boolean {
  if (hint.type === 'resync') return true;
  return (
    (filter.tenant === undefined || filter.tenant === hint.tenant) &&
    (filter.worker === undefined || filter.worker === hint.worker) &&
    (filter.conversation === undefined || filter.conversation === hint.conversation) &&
    (filter.id === undefined || filter.id === hint.id)
  );
}
