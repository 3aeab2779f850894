/** Time as the runtime sees it. Tests bring a clock that only moves when told. */
export interface Clock {
  /** Milliseconds since the epoch; never goes back, whatever happens to the wall clock. */
  now(): number;
  /** Calls back once after `ms`, unless disposed first. `keepAlive: false` lets the process end before. */
  setTimer(ms: number, callback: () => void, options?: { keepAlive?: boolean }): Disposable;
}

// Read once: it never changes, and asking for it costs as much as asking for the time.
const { timeOrigin } = performance;

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => timeOrigin + performance.now(),
  setTimer(ms, callback, { keepAlive = true } = {}) {
    const timer = setTimeout(callback, ms);
    if (!keepAlive) timer.unref();
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  },
};

/** Everything the runtime takes from outside itself: time, names and chance. */
export interface World {
  readonly clock: Clock;
  createId(): string;
  /** A number in [0, 1). */
  random(): number;
}

/** The real world. */
export const systemWorld: World = {
  clock: systemClock,
  createId: () => crypto.randomUUID(),
  random: () => Math.random(),
};
