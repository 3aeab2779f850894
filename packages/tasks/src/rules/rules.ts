import type { Policy, StopLevel } from '@whoa/core';
import { createStopSchedule, MAX_WAITING_MESSAGES } from '@whoa/core/internal';
import { STATUS_TABLE, type TaskStatus } from '../status.ts';

/**
 * What a task does when it comes into its conversation.
 *
 * - `start`: it is the current one. `wait`: it is queued. `reject`: nothing is written.
 * - `replace`: what waits ends as superseded; the current one too, if it never began, and this one starts; otherwise the
 *   current one is told to stop, and this one waits.
 * - `steer`: its message is given to the current one, and it waits in case the message comes too late.
 */
export type Admission = 'start' | 'wait' | 'replace' | 'steer' | 'reject';

/** Where the current task of a conversation stands; `none`: there is no current one. */
export type CurrentState = 'none' | Extract<TaskStatus, 'init' | 'running' | 'cancelling'>;

/** What each policy does, by the state of the current task. */
export const ADMISSION_TABLE: Readonly<Record<Policy, Readonly<Record<CurrentState, Admission>>>> = {
  replace: { none: 'start', init: 'replace', running: 'replace', cancelling: 'replace' },
  queue: { none: 'start', init: 'wait', running: 'wait', cancelling: 'wait' },
  steer: { none: 'start', init: 'steer', running: 'steer', cancelling: 'wait' },
  reject: { none: 'start', init: 'reject', running: 'reject', cancelling: 'reject' },
};

/** How hard each level is. */
export const LEVEL_RANKS: Readonly<Record<StopLevel, number>> = { drain: 1, abort: 2, kill: 3 };

/** A cancel that names no ladder, as distances from now. */
export const GRACEFUL: ReturnType<typeof createStopSchedule> = createStopSchedule('graceful', 0);

/** The agent under which tasks are ready that only have to be settled: any worker can do that. */
export const SETTLE = '*';

/** Every bound of a store. Stores in other languages get them as text (`to-lua.ts`, `to-sql.ts`), never by hand. */
export const LIMITS: Readonly<
  Record<
    | 'maxCommands'
    | 'maxNonces'
    | 'maxQueued'
    | 'maxGathered'
    | 'maxOrders'
    | 'maxMoved'
    | 'maxDeaths'
    | 'maxForgotten'
    | 'homeMs'
    | 'deathDelayMs'
    | 'maxDeathDelayMs'
    | 'parkedMs'
    | 'sweepAskedMs',
    number
  >
> = {
  /** Commands that wait for one worker. */
  maxCommands: 100,
  /** A command that is sent again is recognised until so many newer ones were sent to its task. */
  maxNonces: 100,
  /** Tasks that wait in one conversation or for one concurrency key. */
  maxQueued: MAX_WAITING_MESSAGES,
  /** Messages that join one task while it is held back. */
  maxGathered: 1_000,
  /** Orders that one beat returns. */
  maxOrders: 200,
  /** Tasks that are moved from `later` by one take, and freed by one sweep. */
  maxMoved: 100,
  /** How often the workers of a task may die in all. */
  maxDeaths: 20,
  /** How many expired things are forgotten each time a task is created. */
  maxForgotten: 10,
  /** A worker that was named when a task was created has this long to claim it before others take it. */
  homeMs: 5_000,
  /** A worker whose attempts to run a task died waits so long before it is taken again, doubled each time, at most … */
  deathDelayMs: 500,
  maxDeathDelayMs: 60_000,
  /** A worker that waits for work is rung until so long after its last take. */
  parkedMs: 120_000,
  /** Only one worker is asked to sweep in so long. */
  sweepAskedMs: 1_000,
};

/** What stores assume unless they are told otherwise. */
export const DEFAULTS: Readonly<
  Record<
    | 'maxAttempts'
    | 'retentionMs'
    | 'conversationRetentionMs'
    | 'maxJournalBytes'
    | 'maxReady'
    | 'listLimit'
    | 'readLimit'
    | 'maxCounted'
    | 'workersLimit'
    | 'maxBytes',
    number
  >
> = {
  maxAttempts: 3,
  retentionMs: 7 * 24 * 3_600_000,
  conversationRetentionMs: 90 * 24 * 3_600_000,
  maxJournalBytes: 16 * 1024 * 1024,
  maxReady: 1_000_000,
  listLimit: 100,
  readLimit: 1_000,
  /** How far tasks are counted. */
  maxCounted: 100_000,
  workersLimit: 1_000,
  /** Inputs and histories that come along with a take. */
  maxBytes: 256 * 1024,
};

/** Bounds of what is handed in. */
export const SIZES: Readonly<Record<'inputBytes' | 'outcomeBytes' | 'historyBytes', number>> = {
  inputBytes: 4 * 1024 * 1024,
  outcomeBytes: 4 * 1024 * 1024,
  historyBytes: 64 * 1024 * 1024,
};

/** Everything that stores in other languages need, as plain data. */
export const RULES: {
  readonly status: typeof STATUS_TABLE;
  readonly admission: typeof ADMISSION_TABLE;
  readonly ranks: typeof LEVEL_RANKS;
  readonly graceful: { readonly level: StopLevel; readonly abortMs: number; readonly killMs: number };
  readonly settle: string;
  readonly limits: typeof LIMITS;
  readonly sizes: typeof SIZES;
} = {
  status: STATUS_TABLE,
  admission: ADMISSION_TABLE,
  ranks: LEVEL_RANKS,
  graceful: { level: GRACEFUL.level, abortMs: GRACEFUL.abortAt, killMs: GRACEFUL.killAt },
  settle: SETTLE,
  limits: LIMITS,
  sizes: SIZES,
};
