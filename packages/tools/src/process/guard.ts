import { isFrozen, type ProcessIdentity } from './identity/identity.ts';
import { signalProcess } from './signal.ts';

/** How often host and watchdog look after each other while commands run. */
const LOOK_MS = 1_000;

/** Looks whether a process was frozen: it is continued, and if it is frozen again a second later, `onFrozenAgain` is called. */
export class Guard {
  readonly #onFrozenAgain: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(onFrozenAgain: () => void) {
    this.#onFrozenAgain = onFrozenAgain;
  }

  /** Keeps no process alive. */
  start(guarded: ProcessIdentity): void {
    if (this.#timer !== undefined) return;
    let wasFrozen = false;
    this.#timer = setInterval(() => {
      const isFrozenNow = isFrozen(guarded);
      if (isFrozenNow && wasFrozen) this.#onFrozenAgain();
      if (isFrozenNow) signalProcess(guarded, 'SIGCONT');
      wasFrozen = isFrozenNow;
    }, LOOK_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
