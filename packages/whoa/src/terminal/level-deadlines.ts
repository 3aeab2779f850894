import { LADDERS, type Ladder, type StopLevel, type StopMode } from '@whoa/core';

/** How long each level of a stop may last, when the stop came from Ctrl-C and went by this ladder. */
export class LevelDeadlines {
  readonly #ladder: Ladder;
  #abortAt: number | undefined;
  #killAt: number | undefined;

  constructor(first: StopMode = 'graceful') {
    this.#ladder = typeof first === 'string' ? LADDERS[first] : first;
  }

  /** Tells it that a level was reached; answers when the next one is due. */
  reach(level: StopLevel, at: number): number | undefined {
    const { drainMs = 0, abortMs = 0 } = this.#ladder;
    if (level === 'kill') return undefined;
    if (level === 'drain') {
      this.#abortAt = at + drainMs;
      this.#killAt = this.#abortAt + abortMs;
      return this.#abortAt;
    }
    this.#killAt ??= at + abortMs;
    // Before its time: somebody pressed again, and that means now.
    if (this.#abortAt !== undefined && at < this.#abortAt) {
      this.#killAt = Math.min(this.#killAt, at + (LADDERS.now.abortMs ?? 0));
    }
    return this.#killAt;
  }
}
