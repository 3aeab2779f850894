import type { Clock } from '@whoa/core';
import type { TaskStore } from '../store.ts';

/** A task for an agent that this worker does not have is not looked at again for so long. */
const BACK_OFF_MS = 60_000;
/** How many are remembered; beyond that the oldest are met anew. */
const STRANGERS_MAX = 1_000;

/** Tasks that are due and that this worker cannot run: others can, so it keeps out of their way. */
export class Strangers {
  readonly #clock: Clock;
  /** Until when, oldest first. */
  readonly #until = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many of those that are due are to be passed over. */
  get size(): number {
    for (const [id, until] of this.#until) {
      if (until > this.#clock.now()) break;
      this.#until.delete(id);
    }
    return this.#until.size;
  }

  get isFull(): boolean {
    return this.#until.size >= STRANGERS_MAX;
  }

  add(id: string): void {
    this.#until.delete(id);
    this.#until.set(id, this.#clock.now() + BACK_OFF_MS);
    const [oldest] = this.#until.keys();
    if (this.#until.size > STRANGERS_MAX) this.#until.delete(oldest!);
  }

  has(id: string): boolean {
    return (this.#until.get(id) ?? 0) > this.#clock.now();
  }
}

interface TakeOptions {
  readonly store: TaskStore;
  readonly free: () => number;
  /** False if it is a stranger. */
  readonly take: (id: string) => Promise<boolean>;
}

/** Takes what is due, as much as there is room for. */
export async function takeDue(strangers: Strangers, { store, free, take }: TakeOptions): Promise<void> {
  let hasMet: boolean;
  do {
    hasMet = false;
    if (free() <= 0) return;
    // Ask for more than can be taken: those that cannot be run here may stand in front.
    const due = await store.due({ limit: free() + strangers.size });
    for (const id of due.filter((one) => !strangers.has(one)).slice(0, free())) {
      if (await take(id)) continue;
      strangers.add(id);
      hasMet = true;
    }
    // Don't go on when no more can be remembered: the same ones would be met for ever.
  } while (hasMet && !strangers.isFull);
}
