import type { StopLevel, StopMode } from '@whoa/core';
import { LADDERS } from '@whoa/core/embed';
import type { Ladder } from '@whoa/core/internal';

/** Computes the deadlines of the levels when Ctrl-C stops a run with this ladder. */
export class LevelDeadlines {
  readonly #ladder: Ladder;
  #abortAt: number | undefined;
  #killAt: number | undefined;

  constructor(first: StopMode = 'now') {
    this.#ladder = typeof first === 'string' ? LADDERS[first] : first;
  }

  /** Records that a level was reached. Returns when the next one is due. */
  reach(level: StopLevel, at: number): number | undefined {
    const { drainMs = 0, abortMs = 0 } = this.#ladder;
    if (level === 'kill') return undefined;
    if (level === 'drain') {
      this.#abortAt = at + drainMs;
      this.#killAt = this.#abortAt + abortMs;
      return this.#abortAt;
    }
    this.#killAt ??= at + abortMs;
    // Earlier than planned: the user pressed Ctrl-C again, which means now.
    if (this.#abortAt !== undefined && at < this.#abortAt) {
      this.#killAt = Math.min(this.#killAt, at + (LADDERS.now.abortMs ?? 0));
    }
    return this.#killAt;
  }
}
