/**
 * Items with a time, earliest first; those of one moment by name, as in every store. A changed item is added again;
 * `isCurrent` detects its old entries.
 */
export class Schedule<T> {
  readonly #heap: { readonly at: number; readonly item: T }[] = [];
  readonly #isCurrent: (item: T, at: number) => boolean;

  constructor(isCurrent: (item: T, at: number) => boolean) {
    this.#isCurrent = isCurrent;
  }

  add(item: T, at: number): void {
    const heap = this.#heap;
    heap.push({ at, item });
    for (let child = heap.length - 1; child > 0; ) {
      const parent = (child - 1) >> 1;
      if (!isBefore(heap[child]!, heap[parent]!)) break;
      [heap[parent], heap[child]] = [heap[child]!, heap[parent]!];
      child = parent;
    }
  }

  first(): { readonly at: number; readonly item: T } | undefined {
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      if (this.#isCurrent(first.item, first.at)) return first;
      this.shift();
    }
    return undefined;
  }

  shift(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    heap[0] = last;
    for (let parent = 0; ; ) {
      let least = parent;
      for (const child of [2 * parent + 1, 2 * parent + 2]) {
        if (child < heap.length && isBefore(heap[child]!, heap[least]!)) least = child;
      }
      if (least === parent) return;
      [heap[parent], heap[least]] = [heap[least]!, heap[parent]!];
      parent = least;
    }
  }
}

function isBefore<T>(one: { readonly at: number; readonly item: T }, other: typeof one): boolean {
  return one.at < other.at || (one.at === other.at && one.item < other.item);
}

/** Groups of ids, each in insertion order. Empty groups are removed. */
export class Groups {
  readonly #groups = new Map<string, Set<string>>();

  /** Returns the sizes of the groups whose names start so, by the rest of their names. */
  counts(prefix: string): [string, number][] {
    const found = [...this.#groups].filter(([group]) => group.startsWith(prefix));
    return found.map(([group, ids]) => [group.slice(prefix.length), ids.size]);
  }

  add(group: string, id: string): void {
    const ids = this.#groups.get(group) ?? new Set();
    this.#groups.set(group, ids.add(id));
  }

  delete(group: string, id: string): void {
    const ids = this.#groups.get(group);
    if (ids?.delete(id) && ids.size === 0) this.#groups.delete(group);
  }

  count(group: string): number {
    return this.#groups.get(group)?.size ?? 0;
  }

  first(group: string): string | undefined {
    for (const id of this.#groups.get(group) ?? []) return id;
    return undefined;
  }

  some(group: string, limit: number): string[] {
    const some: string[] = [];
    if (limit > 0) for (const id of this.#groups.get(group) ?? []) if (some.push(id) >= limit) break;
    return some;
  }
}
