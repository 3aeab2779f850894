import { StoreBusyError } from '../../../errors.ts';

/** Limits how many callers continue at the same time. The others wait in order, up to a time limit. */
export class ConnectionLimit {
  readonly #most: number;
  readonly #waitMs: number;
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  constructor(most: number, waitMs: number) {
    this.#most = most;
    this.#waitMs = waitMs;
  }

  async wait(operation: string): Promise<void> {
    if (this.#taken < this.#most) {
      this.#taken++;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const come = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(come);
        reject(
          new StoreBusyError(
            `All ${this.#most} connections of this store were in use for ${this.#waitMs} ms before '${operation}' could start. Nothing was changed; send fewer requests at the same time, or raise maxConnections`,
          ),
        );
      }, this.#waitMs);
      this.#waiting.add(come);
    });
  }

  /** Passes the free connection to the caller that has waited longest. */
  leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#taken--;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
