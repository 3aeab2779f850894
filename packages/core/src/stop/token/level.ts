import { boundedMs, group, isObject, type Rule, unexpected } from '../settings.ts';

/**
 * How hard a piece of work is asked to stop.
 *
 * - `drain`: start nothing new; running work may finish.
 * - `abort`: signals fire; interruptible work stops now and returns what it has.
 * - `kill`: stop waiting; what has not ended is abandoned, recorded and fenced.
 */
export type StopLevel = 'drain' | 'abort' | 'kill';

const LEVELS: readonly StopLevel[] = ['drain', 'abort', 'kill'];
const RANKS: Readonly<Record<StopLevel, number>> = { drain: 1, abort: 2, kill: 3 };

/**
 * Ranks a level.
 *
 * @returns 0 for "not cancelled", and a higher number for each level.
 */
export function rankLevel(level: StopLevel | undefined): number {
  return level === undefined ? 0 : RANKS[level];
}

/** The level of a rank; `undefined` for 0. */
export function levelAt(rank: number): StopLevel | undefined {
  return LEVELS[rank - 1];
}

/** How long each level may last before the next. A ladder starts at the first level it names, `kill` if it names none. */
export interface Ladder {
  readonly drainMs?: number | undefined;
  readonly abortMs?: number | undefined;
}

/** A ladder, or the name of a preset. */
export type StopMode = Ladder | 'graceful' | 'now' | 'kill';

/** The presets: `graceful` lets running calls finish, `now` interrupts them, `kill` waits for nothing. */
export const LADDERS: { readonly graceful: Ladder; readonly now: Ladder; readonly kill: Ladder } = {
  graceful: { drainMs: 10_000, abortMs: 2_000 },
  now: { abortMs: 2_000 },
  kill: {},
};

/**
 * Finds the preset that starts at a level.
 *
 * @returns The name of the preset.
 */
export function toPreset(level: StopLevel): 'graceful' | 'now' | 'kill' {
  return level === 'drain' ? 'graceful' : level === 'abort' ? 'now' : 'kill';
}

/** No level may last longer than this: a stop that takes hours is not a stop. */
const MAX_LEVEL_MS = 3_600_000;

/** Adds nothing to any other. */
export const LONGEST_LADDER: Ladder = { drainMs: MAX_LEVEL_MS, abortMs: MAX_LEVEL_MS };

/** A ladder pinned to a moment: where it starts and when each later level is due. */
export interface StopSchedule {
  readonly level: StopLevel;
  readonly abortAt: number;
  readonly killAt: number;
}

/**
 * Pins a ladder to `now`.
 *
 * @returns When each level begins.
 */
export function createStopSchedule(mode: StopMode, now: number): StopSchedule {
  const known = stopMode(mode, 'mode') as StopMode;
  const { drainMs, abortMs } = typeof known === 'string' ? LADDERS[known] : known;
  const abortAt = now + (drainMs ?? 0);
  const killAt = abortAt + (abortMs ?? 0);
  const level = drainMs !== undefined ? 'drain' : abortMs !== undefined ? 'abort' : 'kill';
  return { level, abortAt, killAt };
}

/** The stricter of two schedules, level by level. */
export function earliest(a: StopSchedule, b: StopSchedule): StopSchedule {
  return { ...a, abortAt: Math.min(a.abortAt, b.abortAt), killAt: Math.min(a.killAt, b.killAt) };
}

/** The rest of a schedule if its timer fired early, as where a test fakes timers but not the time. */
export function shortenGrace({ level, abortAt, killAt }: StopSchedule, earlyMs: number): StopSchedule {
  // A real timer may be early by a millisecond: a ladder must not get shorter with each level.
  const ms = earlyMs < 2 ? 0 : earlyMs;
  return { level, abortAt: abortAt - ms, killAt: killAt - ms };
}

/** The longest a ladder may take from the cancel to `kill`. */
export function getLadderMs(mode: StopMode): number {
  return createStopSchedule(mode, 0).killAt;
}

const levelMs = /*#__PURE__*/ boundedMs({ orZero: true, max: MAX_LEVEL_MS });
const ladder = /*#__PURE__*/ group<Ladder>({ drainMs: levelMs, abortMs: levelMs });

/** The rule for a setting that is a ladder or the name of a preset. */
export const stopMode: Rule = (value, field) => {
  if (typeof value === 'string' ? Object.hasOwn(LADDERS, value) : isObject(value)) {
    return typeof value === 'string' ? value : ladder(value, field);
  }
  throw unexpected(field, value, "'graceful', 'now', 'kill' or { drainMs, abortMs }");
};
