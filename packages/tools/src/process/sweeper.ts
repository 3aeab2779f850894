import { setImmediate } from 'node:timers/promises';
import type { Ended } from './containment/boundary.ts';
import { Ending, type EndingOptions } from './ending.ts';
import { Attribution, type Look } from './identity/attribution.ts';
import type { Scope, ScopePart } from './identity/scope.ts';

/** The longest pause between two looks while something is being ended. */
const TICK_MS = 4;

/** Ends commands, sharing each look between them. Idle when there is nothing to end. */
export class Sweeper {
  readonly #attribution = new Attribution();
  readonly #endings = new Map<Scope | ScopePart, { ending: Ending; resolve: (ended: Ended) => void }>();
  #wake: () => void = () => {};
  #isRunning = false;

  /** Includes a scope in every look, so that processes of one command are never assigned to another. */
  add(scope: Scope): void {
    this.#attribution.add(scope);
  }

  delete(scope: Scope): void {
    this.#attribution.delete(scope);
    // A part of it that is still being ended must not wait for what it saw last.
    scope.clear();
  }

  /** Ends the processes of a scope, or a part of them. Call it once per scope. */
  end(scope: Scope | ScopePart, options: EndingOptions): Promise<Ended> {
    const { promise, resolve } = Promise.withResolvers<Ended>();
    const ending = new Ending(scope, options);
    this.#endings.set(scope, { ending, resolve });
    // Signal the known family immediately, before the expensive full look.
    const isUnderWay =
      this.#attribution.lookAtFamily('whole' in scope ? scope.whole : scope) && ending.step() === 'wait';
    if (this.#isRunning) this.#wake();
    else this.#run(isUnderWay ? TICK_MS : 0).catch((error: unknown) => this.#abandonEndings(error));
    return promise;
  }

  /** Ends the grace period of a running end now. */
  shortenGrace(scope: Scope): void {
    this.#endings.get(scope)?.ending.shortenGrace();
    this.#wake();
  }

  /** A process may have ended: look now instead of at the next tick. */
  readonly wake = (): void => this.#wake();

  async #run(pauseMs: number): Promise<void> {
    this.#isRunning = true;
    try {
      if (pauseMs > 0) await this.#pause(pauseMs, 0);
      for (let isFirst = true; this.#endings.size > 0; isFirst = false) {
        const startedAt = performance.now();
        const look = this.#look(isFirst);
        let isHasty = false;
        for (const [scope, { ending, resolve }] of this.#endings) {
          const step = ending.step(look);
          if (step === 'again') isHasty = true;
          else if (step !== 'wait') {
            this.#endings.delete(scope);
            resolve(step);
          }
        }
        if (this.#endings.size > 0) await this.#pause(isHasty ? 0 : TICK_MS, performance.now() - startedAt);
      }
    } finally {
      this.#isRunning = false;
    }
  }

  /** Reads all processes at first, and to prove that none is left of a command. */
  #look(isFirst: boolean): Look | undefined {
    if (!isFirst) this.#attribution.refresh();
    const hasEnded = (scope: Scope | ScopePart): boolean => scope.members.length === 0;
    return isFirst || [...this.#endings.keys()].some(hasEnded) ? this.#attribution.look() : undefined;
  }

  /** A wake shortens the pause. With many commands a look is expensive, so leave half of the time to other work. */
  async #pause(ms: number, scanMs: number): Promise<void> {
    if (ms === 0 && scanMs < TICK_MS) {
      await setImmediate();
      return;
    }
    const dearMs = scanMs < TICK_MS ? 0 : scanMs;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.max(ms, dearMs));
      this.#wake = () => {
        if (dearMs > 0) return;
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = () => {};
  }

  /** Without a readable `/proc` nothing can be verified. */
  #abandonEndings(error: unknown): void {
    process.emitWarning(new Error('Could not read the process table; nothing is verified', { cause: error }));
    for (const { resolve } of this.#endings.values()) resolve({ verified: 'no', ended: 0, survivors: [] });
    this.#endings.clear();
  }
}
