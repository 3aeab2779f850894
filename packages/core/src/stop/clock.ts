import { hasMethods, type Rule, unexpected } from './settings.ts';

/** The runtime's source of time. Tests pass a clock that they advance by hand. */
export interface Clock {
  /**
   * Milliseconds since the epoch. Never goes back, even when the wall clock does. It stops while the machine sleeps, as
   * timers do, so a time limit counts only the time awake.
   */
  now(): number;
  /** The wall clock. It may jump, and it keeps going while the machine sleeps. */
  wallNow?(): number;
  /**
   * Calls `callback` once after `ms`, of any length, unless disposed first. `Infinity` never fires; `NaN` throws.
   * `keepAlive: false` lets the process exit before the timer fires.
   */
  setTimer(ms: number, callback: () => void, options?: { keepAlive?: boolean }): Disposable;
}

// Read once: it never changes, and reading it costs as much as reading the time.
const { timeOrigin } = performance;

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => timeOrigin + performance.now(),
  wallNow: () => Date.now(),
  setTimer(ms, callback, { keepAlive = true } = {}) {
    if (isNever(ms)) return NEVER;
    if (ms > MAX_TIMEOUT_MS) return setLongTimer(ms, callback, { keepAlive });
    const timer: unknown = setTimeout(callback, Math.max(0, ms));
    // In browsers and workers a timer is a number, and there is no process to keep alive.
    if (!keepAlive) (timer as { unref?: () => void }).unref?.();
    return { [Symbol.dispose]: () => clearTimeout(timer as number) };
  },
};

/** Above this, `setTimeout` fires immediately. */
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

/** Returns whether a wait of this length never ends. Throws for `NaN`. A negative wait ends immediately. */
export function isNever(ms: number): boolean {
  if (typeof ms !== 'number' || Number.isNaN(ms)) {
    throw unexpected('ms', ms, 'a number of milliseconds, or Infinity for never');
  }
  return ms === Infinity;
}

/** Everything the runtime takes from its environment: time, ids and randomness. */
export interface World {
  readonly clock: Clock;
  /** Creates a unique id. */
  createId(): string;
  /** A number in [0, 1). */
  random(): number;
}

/** The real world. */
export const systemWorld: World = { clock: systemClock, createId, random: () => Math.random() };

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
