import { systemClock, type World } from '@whoa/core/embed';
import { createLibrary, type Library, RULES } from '../../../packages/tasks/src/stores/redis/library.ts';

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

const SERVER_TIME = "local time = redis.call('TIME')";
const NO_TIME = 'local time = { 0, 0 }';

/**
 * Returns rules that use the test's time as the offset from the server's clock. Between two reads of that clock some
 * milliseconds pass, so times could only be compared roughly.
 */
export function createExactLibrary(rules: string = RULES): Library {
  if (!rules.includes(SERVER_TIME)) throw new Error(`the rules no longer read the time with: ${SERVER_TIME}`);
  return createLibrary(rules.replace(SERVER_TIME, NO_TIME));
}
