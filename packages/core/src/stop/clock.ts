import { hasMethods, type Rule, unexpected } from './settings.ts';

/** Time as the runtime sees it. Tests bring a clock that only moves when told. */
export interface Clock {
  /**
   * Milliseconds since the epoch; never goes back, whatever happens to the wall clock. It stands still while the machine
   * sleeps, as timers do: what has a bound gets the whole of it awake.
   */
  now(): number;
  /** What the wall clock says: it may step, and it goes on while the machine sleeps. */
  wallNow?(): number;
  /**
   * Calls back once after `ms`, however long that is, unless disposed first; after `Infinity` never. Throws for `NaN`.
   * `keepAlive: false` lets the process end before.
   */
  setTimer(ms: number, callback: () => void, options?: { keepAlive?: boolean }): Disposable;
}

// Read once: it never changes, and asking for it costs as much as asking for the time.
const { timeOrigin } = performance;

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => timeOrigin + performance.now(),
  wallNow: () => Date.now(),
  setTimer(ms, callback, { keepAlive = true } = {}) {
    if (isNever(ms)) return NEVER;
    if (ms > MAX_TIMEOUT_MS) return setLongTimer(ms, callback, { keepAlive });
    const timer: unknown = setTimeout(callback, Math.max(0, ms));
    // Browsers and workers know a timer by its number, and have no process to keep alive.
    if (!keepAlive) (timer as { unref?: () => void }).unref?.();
    return { [Symbol.dispose]: () => clearTimeout(timer as number) };
  },
};

/** Asked for more than this, `setTimeout` fires at once. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

function setLongTimer(ms: number, callback: () => void, options: { keepAlive: boolean }): Disposable {
  const dueAt = systemClock.now() + ms;
  let timer = NEVER;
  const wait = (): void => {
    const left = dueAt - systemClock.now();
    const isLast = left <= MAX_TIMEOUT_MS;
    timer = systemClock.setTimer(isLast ? left : MAX_TIMEOUT_MS, isLast ? callback : wait, options);
  };
  wait();
  return { [Symbol.dispose]: () => timer[Symbol.dispose]() };
}

/** The timer of a wait that never ends. */
export const NEVER: Disposable = { [Symbol.dispose]: () => {} };

/** Whether a wait of this length never ends. Throws for what is no length; a negative one is over at once. */
export function isNever(ms: number): boolean {
  if (typeof ms !== 'number' || Number.isNaN(ms)) {
    throw unexpected('ms', ms, 'a number of milliseconds, or Infinity for never');
  }
  return ms === Infinity;
}

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
  createId,
  random: () => Math.random(),
};

function createId(): string {
  // A page that was not fetched over HTTPS has no `randomUUID`.
  if (typeof crypto.randomUUID === 'function') return crypto.randomUUID();
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The rule for a setting that is a world. */
export const worldRule: Rule = (value, field) => {
  const expected = 'a world: { clock: { now(), setTimer() }, createId(), random() }';
  if (!hasMethods(value, ['createId', 'random'])) throw unexpected(field, value, expected);
  const { clock } = value as World;
  if (!hasMethods(clock, ['now', 'setTimer'])) throw unexpected(`${field}.clock`, clock, expected);
  const now: unknown = clock.now();
  if (!Number.isFinite(now)) throw unexpected(`${field}.clock.now()`, now, 'milliseconds since the epoch');
  return value;
};
