import { systemClock, type World } from '@whoa/core/embed';

/** The time and the ids of one history: the same for every store, and exact to the millisecond. */
export class SharedTime {
  now = 0;
  /** The nonce of a request that has none. */
  nonce = '';
  /** Timers that only run when the history advances them. */
  readonly #timers = new Set<() => void>();

  /** For stores whose timers should run by themselves. */
  readonly world: World = this.#worldWith((...timer) => systemClock.setTimer(...timer));
  /** For a store whose timers run when `runTimers` is called. */
  readonly heldWorld: World = this.#worldWith((_ms, callback) => {
    this.#timers.add(callback);
    return { [Symbol.dispose]: () => this.#timers.delete(callback) };
  });

  runTimers(): void {
    const due = [...this.#timers];
    this.#timers.clear();
    for (const callback of due) callback();
  }

  #worldWith(setTimer: World['clock']['setTimer']): World {
    return { clock: { now: () => this.now, setTimer }, createId: () => this.nonce, random: () => 0.5 };
  }
}
