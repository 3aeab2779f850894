import { type Cleanup, type CleanupError, Cleanups } from './cleanup.ts';
import type { Clock } from './clock.ts';
import type { LateEnd } from './ledger.ts';
import type { StopLevel } from './level.ts';
import type { CancelReason } from './reason.ts';
import { shield } from './shield.ts';
import type { CancellationToken } from './token.ts';
import { type WaitEnd, waitUnder } from './wait.ts';

/** What work under a token is given. */
export interface WorkContext {
  /** Fires at `abort`. Hand it to `fetch`, timers, child processes. */
  readonly signal: AbortSignal;
  readonly token: CancellationToken;
  /** Registers a cleanup: it runs when the work ends, however it ends. */
  readonly defer: (cleanup: Cleanup) => void;
}

/** What work can bear: to be interrupted, or only to finish. */
export type WhenCancelled = 'interrupt' | 'finish';

export interface Bound {
  readonly token: CancellationToken;
  readonly name: string;
  readonly whenCancelled: WhenCancelled;
  /** `finish` work needs one. */
  readonly timeoutMs: number | undefined;
  readonly cleanupMs: number;
  /** Ordinary work sits a drain out and is abandoned at `kill`. Nested work hears every level and bounds itself. */
  readonly nested: boolean;
  /** Called with the work's own token before it starts. */
  readonly onStart?: (own: CancellationToken) => void;
  /** A cancel has to wait for this `finish` work. */
  readonly onWait?: (level: StopLevel, reason: CancelReason) => void;
  readonly onCleanupError: (error: CleanupError) => void;
}

/** The truth about one piece of work, exactly one of these. */
export type BoundedEnd<T> =
  | { readonly state: 'finished'; readonly value: T }
  | { readonly state: 'failed'; readonly error: unknown }
  | { readonly state: 'interrupted'; readonly error: unknown; readonly reason: CancelReason }
  /** `late` settles if the abandoned work comes back after all; it never rejects. */
  | { readonly state: 'unknown'; readonly reason: CancelReason; readonly late: Promise<LateEnd> }
  | { readonly state: 'not-started'; readonly reason: CancelReason };

/**
 * Runs work so that the wait for it always ends: when it does, or at `kill`. Then it cleans up, bounded, and looks once
 * more. What is still pending is abandoned: its end is `unknown`, and a late result can change nothing.
 */
export async function runBounded<T>(
  execute: (context: WorkContext) => T | PromiseLike<T>,
  bound: Bound,
): Promise<BoundedEnd<T>> {
  const { token } = bound;
  if (token.isCancelled) return { state: 'not-started', reason: token.reason! };
  const own = createOwnToken(bound);
  const cleanups = new Cleanups(bound.onCleanupError);
  const warning = warnWhenCancelMustWait(bound);
  try {
    bound.onStart?.(own);
    const work = start(execute, own, cleanups.defer);
    if (bound.nested) await settled(work);
    let end = await waitUnder(work, own, 'kill');
    await cleanups.run(own, bound.cleanupMs);
    if (end.by === 'level') end = await lastWords(work, end);
    return endOf(end, work, own);
  } finally {
    warning?.[Symbol.dispose]();
    own[Symbol.dispose]();
  }
}

function createOwnToken(bound: Bound): CancellationToken {
  const { token, name, timeoutMs } = bound;
  if (bound.whenCancelled === 'finish') {
    if (timeoutMs === undefined)
      throw new TypeError(`timeoutMs: '${name}' finishes when cancelled, so it needs a bound`);
    return shield(token, { boundMs: timeoutMs, name });
  }
  const own = token.child({ name, hears: bound.nested ? 'drain' : 'abort' });
  if (timeoutMs !== undefined) {
    own.cancelAfter(
      timeoutMs,
      { kind: 'deadline', message: `${name} took longer than ${timeoutMs} ms` },
      { how: 'now' },
    );
  }
  return own;
}

function warnWhenCancelMustWait({ token, whenCancelled, onWait }: Bound): Disposable | undefined {
  if (whenCancelled !== 'finish' || onWait === undefined) return undefined;
  let warned = false;
  return token.onCancel((level, reason) => {
    if (!warned) onWait(level, reason);
    warned = true;
  });
}

async function start<T>(
  execute: (context: WorkContext) => T | PromiseLike<T>,
  token: CancellationToken,
  defer: (cleanup: Cleanup) => void,
): Promise<T> {
  // `signal` is a getter: work that never asks for it costs no AbortController.
  return execute({
    token,
    defer,
    get signal() {
      return token.signal;
    },
  });
}

/** Waits for an end of any kind. */
async function settled(work: Promise<unknown>): Promise<void> {
  await work.then(
    () => {},
    () => {},
  );
}

/** How many microtasks killed work gets to say how it ended. */
const LAST_WORDS = 50;

/** The end of killed work that reacts without waiting for anything outside: then the truth is known after all. */
async function lastWords<T>(work: Promise<T>, otherwise: WaitEnd<T>): Promise<WaitEnd<T>> {
  let end = otherwise;
  work.then(
    (value) => (end = { by: 'value', value }),
    (error: unknown) => (end = { by: 'error', error }),
  );
  for (let hop = 0; hop < LAST_WORDS && end === otherwise; hop++) await Promise.resolve();
  return end;
}

function endOf<T>(end: WaitEnd<T>, work: Promise<T>, own: CancellationToken): BoundedEnd<T> {
  switch (end.by) {
    case 'value':
      return { state: 'finished', value: end.value };
    case 'error':
      return own.isCancelled
        ? { state: 'interrupted', error: end.error, reason: own.reason! }
        : { state: 'failed', error: end.error };
    case 'level':
      return { state: 'unknown', reason: own.reason!, late: lateEndOf(work, own.clock) };
  }
}

async function lateEndOf(work: Promise<unknown>, clock: Clock): Promise<LateEnd> {
  try {
    const value = await work;
    return { at: clock.now(), state: 'finished', value };
  } catch (error) {
    return { at: clock.now(), state: 'failed', error };
  }
}
