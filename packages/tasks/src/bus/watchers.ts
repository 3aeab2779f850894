import type { Hint, WatchFilter } from '../store.ts';
import type { TaskRef } from '../task.ts';

interface Watcher {
  readonly filter: WatchFilter;
  readonly listener: (hint: Hint) => void;
}

/** The fields that watchers are indexed by, most selective first. */
const FIELDS = ['id', 'worker', 'conversation', 'tenant'] as const;
const ANY = '';
const OFFERS = 'offers';

/** The watchers in this process, indexed by their filters, no matter how many there are. */
export class Watchers {
  readonly #watchers = new Map<string, Set<Watcher>>();
  size = 0;

  add(filter: WatchFilter, listener: (hint: Hint) => void): AsyncDisposable {
    const watcher = { filter, listener };
    const field = FIELDS.find((name) => filter[name] !== undefined);
    const named = field === undefined ? ANY : `${field} ${filter[field]}`;
    const key = filter.offers === true ? OFFERS : filter.feed === undefined ? named : `feed ${filter.feed}`;
    const group = this.#watchers.get(key) ?? new Set();
    this.#watchers.set(key, group.add(watcher));
    this.size++;
    return {
      [Symbol.asyncDispose]: () => {
        if (group.delete(watcher)) this.size--;
        if (group.size === 0 && this.#watchers.get(key) === group) this.#watchers.delete(key);
        return Promise.resolve();
      },
    };
  }

  /** A listener that throws does not affect the others. */
  notify(hint: Hint): void {
    for (const { filter, listener } of this.#concerned(hint)) {
      try {
        listener(filter.worker === undefined ? withoutOrder(hint) : hint);
      } catch (error) {
        process.emitWarning(new Error('A listener given to watch() failed', { cause: error }));
      }
    }
  }

  /** Returns who reads a task. */
  findReaders({ tenant, id }: TaskRef): Watcher[] {
    return [...(this.#watchers.get(`id ${id}`) ?? [])].filter(({ filter }) => filter.words && filter.tenant === tenant);
  }

  clear(): void {
    this.#watchers.clear();
    this.size = 0;
  }

  #concerned(hint: Hint): Watcher[] {
    if (hint.type === 'resync') return [...this.#watchers.values()].flatMap((group) => [...group]);
    if (hint.type === 'ready' || hint.type === 'watched')
      return [...(this.#watchers.get(`worker ${hint.worker}`) ?? [])];
    if (hint.type === 'feed') return [...(this.#watchers.get(`feed ${hint.consumer}`) ?? [])];
    if (hint.type === 'frame') return this.findReaders(hint);
    if (hint.type === 'offer') return [...(this.#watchers.get(OFFERS) ?? [])];
    const keys = [ANY, ...FIELDS.map((field) => `${field} ${hint[field]}`)];
    const found = keys.flatMap((key) => [...(this.#watchers.get(key) ?? [])]);
    return found.filter(({ filter }) =>
      FIELDS.every((field) => filter[field] === undefined || filter[field] === hint[field]),
    );
  }
}

/** Removes the order, which contains the claim: only the worker may know that. */
function withoutOrder(hint: Hint): Hint {
  if (!('order' in hint)) return hint;
  const { order: _order, ...rest } = hint;
  return rest;
}
