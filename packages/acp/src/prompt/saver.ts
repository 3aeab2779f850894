/** Saves the latest state, one save at a time. All calls during a save share the next one. */
export class Saver {
  readonly #write: () => Promise<void>;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  /** `write` saves the state at the time of the call, and never rejects. */
  constructor(write: () => Promise<void>) {
    this.#write = write;
  }

  /** Resolves when a save that started after this call has ended. */
  save(): Promise<void> {
    if (this.#running === undefined) {
      this.#running = this.#write().finally(() => {
        this.#running = undefined;
      });
      return this.#running;
    }
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      return this.save();
    });
    return this.#next;
  }
}
