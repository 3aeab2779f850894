/** Saves the latest state, one save at a time. Asked again while saving, it saves once more, for everybody who asked. */
export class Saver {
  readonly #write: () => Promise<void>;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  /** `write` saves the state of the moment it is called, and never rejects. */
  constructor(write: () => Promise<void>) {
    this.#write = write;
  }

  /** Resolves when a save that began after this call has ended. */
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
