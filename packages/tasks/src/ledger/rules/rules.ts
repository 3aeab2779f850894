import type { Policy, StopLevel } from '@whoa/core';
import { createStopSchedule, MAX_MERGED_MESSAGES, MAX_WAITING_MESSAGES } from '@whoa/core/internal';
import type { TaskStatus } from './status.ts';

/**
 * What happens when a task enters its conversation.
 *
 * - `start`: it becomes the current task. `wait`: it is queued. `reject`: nothing is written.
 * - `merge`: it takes the place and the messages of the last waiting task, if their contexts are equal; otherwise it waits.
 * - `replace`: waiting tasks end as superseded. A current task that never started ends too, and this one starts; otherwise
 * the current task is ordered to stop, and this one waits.
 * - `steer`: its message is passed to the current task, and it waits in case the message arrives too late.
 */
export type Admission = 'start' | 'wait' | 'merge' | 'replace' | 'steer' | 'reject';

/** The status of a conversation's current task; `none`: there is no current task. */
export type CurrentState = 'none' | Extract<TaskStatus, 'init' | 'running' | 'cancelling'>;

/** What each policy does, by the status of the current task. */
export const ADMISSION_TABLE: Readonly<Record<Policy, Readonly<Record<CurrentState, Admission>>>> = {
  replace: { none: 'start', init: 'replace', running: 'replace', cancelling: 'replace' },
  queue: { none: 'start', init: 'wait', running: 'wait', cancelling: 'wait' },
  merge: { none: 'start', init: 'merge', running: 'merge', cancelling: 'merge' },
  steer: { none: 'start', init: 'steer', running: 'steer', cancelling: 'wait' },
  reject: { none: 'start', init: 'reject', running: 'reject', cancelling: 'reject' },
};

/** How hard each level is. */
export const LEVEL_RANKS: Readonly<Record<StopLevel, number>> = { drain: 1, abort: 2, kill: 3 };

/** The ladder of a cancel that names none, as distances from now. */
const { level, abortAt: abortMs, killAt: killMs } = createStopSchedule('graceful', 0);
export const GRACEFUL: Readonly<{ level: StopLevel; abortMs: number; killMs: number }> = { level, abortMs, killMs };

/** Why a task ends at its deadline. */
export const OVERDUE = { kind: 'deadline', message: 'the deadline of the task has passed' } as const;

/** The ready queue of tasks that only have to be settled: any worker can do that. No agent's name starts with it. */
export const SETTLE = '*';
/** Starts the name of the ready queue in which an agent's suspects wait: tasks whose workers crashed repeatedly. */
export const SUSPECTS = '*?';
/** Starts the name of the ready queue for cancelled tasks whose calls must be undone by a worker that has their agent. */
export const UNDO = '*!';
/** Start the names of the ready queues of an agent that an engine delivers. Workers take from them only what it offers. */
export const OFFERED_SUSPECTS = '*}';
export const OFFERED = '*~';
/** The first name after those of all these ready queues, in byte order. */
export const AFTER_RESERVED = '+';

/** Starts the names of tenants for Whoa's own tasks: no one is told of them. */
export const OWN_TENANTS = 'whoa.';

/** All limits of a store. Stores in other languages get them as generated text (`npm run rules`), never by hand. */
export const LIMITS = {
  /** Commands that wait for one worker. */
  maxCommands: 100,
  /** A repeated command is recognised until this many newer ones were sent to its task. */
  maxNonces: 100,
  /** Tasks that wait in one conversation. */
  maxQueued: MAX_WAITING_MESSAGES as number,
  /** Messages that one task may answer. */
  maxDebounced: MAX_MERGED_MESSAGES as number,
  /** Questions of one task that wait for an answer. */
  maxOpenQuestions: 32,
  /** Orders that one beat returns. */
  maxOrders: 200,
  /** Tasks that are moved from `later` by one take, and freed or removed by one sweep. */
  maxPromoted: 100,
  /** How often the workers of a task may crash in total. */
  maxCrashes: 20,
  /** How many expired records are removed each time a task is created. */
  maxPurged: 10,
  /** How long the preferred worker of a new task has to claim it before others take it. */
  preferredWorkerMs: 5_000,
  /** The delay before a task whose worker crashed is taken again. It doubles each time, up to … */
  crashBackoffMs: 500,
  maxCrashBackoffMs: 60_000,
  /** Up to twice that long, in this many steps, so that tasks that crashed together do not come back together. */
  deathDelaySteps: 8,
  /** From this many attempts on, a task is a suspect when it is taken: its workers may have crashed because of it. */
  suspectAttempts: 2,
  /** When to claim a suspect again if the session already holds another. */
  suspectWaitMs: 1_000,
  /** A waiting worker is notified until this long after its last take. */
  idleWorkerTtlMs: 120_000,
  /** How long a task waits until it is offered to its engine again: after it became ready, and after each such offer. */
  lostOfferMs: 5_000,
  repeatedOfferMs: 600_000,
  /** In this time only one worker is told of lost offers, and of how many at most. */
  offerIntervalMs: 1_000,
  maxOffers: 1_000,
  /** In this time only one worker is asked to sweep. */
  sweepRequestIntervalMs: 1_000,
  /** How long a session is kept after it ended or last held a task. */
  sessionRetentionMs: 86_400_000,
  /** The last contact is written when it is older than this share of a lease: a contact without changes should write nothing. */
  contactShare: 0.125,
  /** A gap between contacts longer than this share of a lease is an outage. Beats come every third. */
  outageShare: 0.5,
} as const;

/** The default options of stores. */
export const DEFAULTS = {
  maxAttempts: 3,
  retentionMs: (7 * 24 * 3_600_000) as number,
  conversationRetentionMs: (90 * 24 * 3_600_000) as number,
  maxJournalBytes: (16 * 1024 * 1024) as number,
  maxReady: 1_000_000,
  listLimit: 100,
  readLimit: 1_000,
  /** The limit up to which tasks are counted. */
  maxCounted: 100_000,
  /** The open questions of all tenants that are counted. */
  maxFigures: 20_000,
  /** The largest pages of what operators read: one step on the server must stay short. Names cost little. */
  maxNames: 1_000,
  maxPage: 100,
  maxQuestions: 200,
  /** Inputs and histories that a take includes. */
  maxBytes: (256 * 1024) as number,
} as const;

/** The maximum sizes of arguments. */
export const SIZES: Readonly<Record<'inputBytes' | 'outcomeBytes' | 'historyBytes' | 'answerBytes', number>> = {
  inputBytes: 4 * 1024 * 1024,
  outcomeBytes: 4 * 1024 * 1024,
  historyBytes: 64 * 1024 * 1024,
  answerBytes: 256 * 1024,
};
