/** Those who follow something. It works while there is at least one. */
export class Listeners {
  readonly #all = new Set<() => void>();
  readonly #onFirst: () => void;
  readonly #onLast: () => void;

  constructor({ onFirst, onLast }: { readonly onFirst: () => void; readonly onLast: () => void }) {
    this.#onFirst = onFirst;
    this.#onLast = onLast;
  }

  /** Returns a function that ends it. */
  readonly add = (listener: () => void): (() => void) => {
    this.#all.add(listener);
    if (this.#all.size === 1) this.#onFirst();
    return () => {
      this.#all.delete(listener);
      if (this.#all.size === 0) this.#onLast();
    };
  };

  notify(): void {
    for (const listener of this.#all) listener();
  }
}
