import type { WorkerContext } from './worker-context.ts';

/** The wait for a moment that has passed by the local clock, and not by the store's: their clocks differ. */
const CLOCK_SKEW_MS = 100;

/** Wakes waiters when something happens to a task. */
export class TaskWakeups {
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #context: WorkerContext;

  constructor(context: WorkerContext) {
    this.#context = context;
  }

  /** Listens from now on: a change before `wait` is called makes it return immediately. It looks again every `pollIntervalMs`. */
  listen(id: string): Disposable & { wait(ms?: number): Promise<void> } {
    const { world, pollIntervalMs } = this.#context;
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting);
    let wake = (): void => {};
    const woken = new Promise<void>((resolve) => (wake = resolve));
    waiting.add(wake);
    return {
      wait: async (ms = pollIntervalMs) => {
        const timer = world.clock.setTimer(Math.min(ms > 0 ? ms : CLOCK_SKEW_MS, pollIntervalMs), wake);
        await woken;
        timer[Symbol.dispose]();
      },
      [Symbol.dispose]: () => {
        waiting.delete(wake);
        if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id);
      },
    };
  }

  /** Something happened to this task; without an id, to any task. */
  wake(id?: string): void {
    const woken = id === undefined ? [...this.#waiting.values()] : [this.#waiting.get(id) ?? []];
    for (const waiting of woken) for (const wake of waiting) wake();
  }
}
